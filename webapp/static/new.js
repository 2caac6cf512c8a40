// New run: ask again what will happen whenever something was changed; load a preset when one is chosen; show which
// fields differ from the preset, and only those that mean something beside the others.
const form = document.getElementById("new-run");
const fields = [...form.querySelectorAll(".recipe-field")];
let timer = 0;

function ask() {
  clearTimeout(timer);
  timer = setTimeout(() => window.htmx.trigger("#panel", "changed"), 300);
}

/** What a field holds, as the server writes it: ticks are `on`, several have commas between. */
function valueOf(field) {
  const ticks = [...field.querySelectorAll("input[type=checkbox]")];
  if (ticks.length) return ticks.filter((tick) => tick.checked).map((tick) => tick.value).join(", ");
  return field.querySelector("select, textarea, input").value;
}

function same(field, one, other) {
  if (field.querySelector("[inputmode=decimal]") && one.trim() && other.trim()) return Number(one) === Number(other);
  return one.split(/[\s,]+/).join() === other.split(/[\s,]+/).join();
}

function showWhatApplies() {
  for (const field of fields) {
    if (!field.dataset.when) continue;
    const [other, values] = field.dataset.when.split("=");
    const asked = fields.find((found) => found.dataset.field === other);
    const value = valueOf(asked), one = values.split(",");
    const applies = values.startsWith("!") ? !one.includes(`!${value.trim()}`) : one.includes(value);
    field.hidden = !applies && !field.querySelector(".invalid-feedback");
  }
}

function markDifferences() {
  for (const field of fields) {
    const { preset } = field.dataset;
    field.classList.toggle("differs", preset !== undefined && !same(field, valueOf(field), preset));
  }
  for (const badge of form.querySelectorAll("[data-differing]")) {
    const count = badge.closest("details").querySelectorAll(".recipe-field.differs").length;
    badge.hidden = !count;
    badge.textContent = `${count} ${count === 1 ? "differs" : "differ"} from the preset`;
  }
}

function look() { showWhatApplies(); markDifferences(); }

form.addEventListener("input", () => { look(); ask(); });
document.getElementById("preset").addEventListener("change", (event) => {
  event.stopPropagation();
  document.getElementById("load-preset").click();
});
look();
