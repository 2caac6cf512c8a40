// The row of settings above the charts: what they are drawn over, smoothing, log scale, the whole again.

const PERCENT = 100;

export class Settings {
  /** `known(name)` tells whether the run has a series: without times or tokens there is no such axis. */
  constructor(view, known) {
    const form = document.getElementById("chart-settings");
    Object.assign(this, { view, known, form, x: form.elements.x, smoothing: form.elements.smoothing, log: form.elements.log });
    this.x.addEventListener("change", () => view.set({ x: this.x.value }));
    this.smoothing.addEventListener("input", () => view.set({ smoothing: Number(this.smoothing.value) / PERCENT }));
    this.log.addEventListener("change", () => view.set({ log: this.log.checked }));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("[data-all]").addEventListener("click", () => { view.show("step", null); view.show("time", null); });
    this.tell();
  }

  tell() {
    const { view, form } = this;
    for (const option of this.x.options) option.disabled = Boolean(option.dataset.needs) && !this.known(option.dataset.needs);
    this.x.value = view.x;
    this.smoothing.value = Math.round(view.smoothing * PERCENT);
    form.querySelector("output").textContent = view.smoothing ? view.smoothing.toFixed(2) : "off";
    this.log.checked = view.log;
    form.querySelector("[data-all]").hidden = !view.spans.step && !view.spans.time;
  }
}
