// New run: ask again what will happen whenever something was changed; load a preset when one is chosen.
const form = document.getElementById("new-run");
let timer = 0;

function ask() {
  clearTimeout(timer);
  timer = setTimeout(() => window.htmx.trigger("#panel", "changed"), 300);
}

form.addEventListener("input", ask);
document.getElementById("preset").addEventListener("change", (event) => {
  event.stopPropagation();
  document.getElementById("load-preset").click();
});
