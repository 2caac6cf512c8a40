// What every page needs: ages that stay fresh, questions before an act, text that copies itself.

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** '3 min ago' for a moment (milliseconds), as webapp/show.py prints it. */
export function age(moment, now = Date.now()) {
  const seconds = (now - moment) / 1000;
  const [size, unit] = UNITS.find(([s]) => Math.abs(seconds) >= s) || UNITS[3];
  const count = seconds > 0 ? Math.floor(seconds / size) : Math.round(-seconds / size);
  if (count < 1 || (unit === "s" && count < 5)) return "just now";
  return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
}

function refreshAges() {
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const text = age(Date.parse(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}

// A button with data-dialog="id" opens that <dialog>; one with data-close closes the dialog around it.
function onClick(event) {
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    const dialog = document.getElementById(opener.dataset.dialog);
    dialog?.showModal();
    dialog?.dispatchEvent(new CustomEvent("opened"));
  }
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog")?.close();
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
  const filler = event.target.closest("[data-fill]");
  if (filler) fill(filler);
}

// A button with data-fill="id" puts its data-text into that field, as if it were typed.
function fill(button) {
  const field = document.getElementById(button.dataset.fill);
  field.value = button.dataset.text;
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
}

// Browsers give no clipboard to a page that came over plain HTTP: there the text is selected, to be copied by hand.
async function copy(button) {
  const from = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(from.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(from);
    button.textContent = "Selected: copy it";
  }
}

// A question that depends on what is chosen comes from the server into its <dialog>, which then opens.
document.addEventListener("htmx:afterSwap", (event) => {
  const dialog = event.detail.target;
  if (dialog.matches?.("dialog[data-asks]") && !dialog.open) dialog.showModal();
});

// What acts on ticked rows can be pressed once one is ticked.
function onTick() {
  const button = document.querySelector("#chosen button");
  if (button) button.disabled = !document.querySelector('input[form="chosen"]:checked');
}
for (const kind of ["change", "htmx:afterSwap", "DOMContentLoaded"]) document.addEventListener(kind, onTick);

document.addEventListener("click", onClick);
setInterval(refreshAges, 5000);
