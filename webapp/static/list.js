// The list of runs: several chosen at once, by mouse, finger or keyboard; what is chosen stays when rows come anew.

const boxes = () => [...document.querySelectorAll('#runs input[name="run"]')];
const all = document.getElementById("all");
const form = document.getElementById("chosen");
const hint = document.getElementById("count")?.textContent;
let last = null; // the box ticked last, from which Shift goes on

function show() {
  const rows = boxes(), ticked = rows.filter((box) => box.checked);
  for (const button of form.querySelectorAll("button")) button.disabled = !ticked.length && !button.closest("dialog");
  document.getElementById("count").textContent = ticked.length ? `${ticked.length} chosen` : hint;
  all.checked = ticked.length > 0 && ticked.length === rows.length;
  all.indeterminate = ticked.length > 0 && ticked.length < rows.length;
}

function onClick(event) {
  const box = event.target;
  if (!box.matches?.('#runs input[name="run"]')) return;
  const rows = boxes(), [from, to] = [rows.indexOf(last), rows.indexOf(box)].sort((a, b) => a - b);
  if (event.shiftKey && from >= 0) for (const between of rows.slice(from, to + 1)) between.checked = box.checked;
  last = box;
  show();
}

// Arrows go from box to box; / goes to the search.
function onKey(event) {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("search").focus();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = boxes().indexOf(event.target);
  if (!step || at < 0) return;
  event.preventDefault();
  boxes()[at + step]?.focus();
}

let held = new Set();
document.addEventListener("htmx:beforeSwap", () => { held = new Set(boxes().filter((box) => box.checked).map((box) => box.value)); });
document.addEventListener("htmx:afterSwap", () => {
  if (!form) return;
  for (const box of boxes()) box.checked = held.has(box.value);
  last = null;
  show();
});

document.addEventListener("keydown", onKey);
if (form) {
  all.addEventListener("change", () => { for (const box of boxes()) box.checked = all.checked; show(); });
  document.addEventListener("click", onClick);
  addEventListener("pageshow", show); // a browser that goes back brings the ticks back too
}
