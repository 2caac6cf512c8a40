// One chart: its curves as tables for uPlot, drawn while it is in sight.
import { PLANNED, spoken } from "./kinds.js";
import { reachable } from "./looks.js";
import { options } from "./options.js";
import { smoothed } from "./smoothing.js";
import { fill } from "./table.js";

const NOTHING = "No point yet: drawn here as they arrive.";
const NOT_HERE = "No point in this part: press 0, or Show all.";

export class Chart {
  /** `page`: the charts and curves that all share (charts.js). */
  constructor(element, page, kind) {
    Object.assign(this, { element, page, kind, names: [], plot: null, shape: "", inSight: false, stale: true, width: 0 });
    this.holder = element.parentElement;
    this.card = element.closest("[data-optional]");
    this.title = element.dataset.title || spoken(element.dataset.series || "");
    this.table = this.holder.querySelector("details");
    this.table?.addEventListener("toggle", () => fill(this));
    new ResizeObserver(([{ contentRect }]) => this.resize(contentRect.width)).observe(element);
  }

  get over() { return this.kind.axis; }

  /** The width is told, not asked for: between two charts that are made, an answer takes a layout of the whole page. */
  resize(width) {
    if (width === this.width) return; // its height follows from what is drawn
    this.width = width;
    this.plot?.setSize(this.dimensions());
  }

  dimensions() {
    const tall = this.element.classList.contains("chart-tall");
    return { width: Math.max(200, Math.round(this.width)), height: tall ? 260 : 190 };
  }

  curve(name) { return this.page.curve(name, this.over); }

  get scale() { return this.page.scale(this.over); }

  /** Tell which series it has; a chart without any is hidden where it may be. */
  pick(known) {
    this.wanted = this.kind.pick(known);
    if (this.card) this.card.hidden = !this.wanted.length;
  }

  draw() {
    this.stale = false;
    const names = this.wanted.filter((name) => this.curve(name)?.xs.length);
    const data = names.length ? this.data(names) : [[]];
    if (!data[0].length) { this.empty(this.page.view.spans[this.over] ? NOT_HERE : NOTHING); return; }
    const { view } = this.page;
    const shape = [this.page.x, view.log, view.smoothing > 0, ...names.map((name) => `${name}${this.curve(name).tail.length ? "+" : ""}`)].join();
    if (!this.plot || shape !== this.shape) this.make(names, shape, data);
    else this.plot.setData(data);
    fill(this);
  }

  empty(why) {
    this.plot?.destroy();
    Object.assign(this, { plot: null, names: [], shape: "" });
    this.element.replaceChildren(Object.assign(document.createElement("p"), { className: "text-secondary m-2", textContent: why }));
  }

  make(names, shape, data) {
    this.plot?.destroy();
    Object.assign(this, { shape, names });
    this.element.replaceChildren();
    this.plot = reachable(new uPlot(options(this), data, this.element));
  }

  /** x and one column a drawn line, in the order of options.js: of each name its values, smoothed ones, its tail. */
  data(names) {
    const tables = names.flatMap((name) => this.tables(name)).map((table) => this.scale.table(table));
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  tables(name) {
    const curve = this.curve(name);
    const { xs, ys } = curve;
    const tables = [[xs, this.drawable(ys)]];
    if (this.smooths(name)) tables[0].push(this.drawable(smoothed(xs, ys, this.page.view.smoothing)));
    if (curve.tail.length) tables.push([curve.tail.map(([x]) => x), this.drawable(curve.tail.map(([, y]) => (typeof y === "string" ? null : y)))]);
    return tables;
  }

  /** What is not above 0 has no place on a log scale. */
  drawable(ys) { return this.isLog ? ys.map((y) => (y > 0 ? y : null)) : ys; }

  smooths(name) { return this.over === "step" && this.page.view.smoothing > 0 && !name.startsWith(PLANNED) && !name.startsWith("eval/"); }

  get isLog() { return this.over === "step" && this.page.view.log; }

  /** From and to on the x axis: the part that is looked at, else all that there is. */
  range(low, high) {
    const shown = this.page.view.spans[this.over];
    const [from, to] = shown ? shown.map((x) => this.scale.place(x) ?? this.edge(x)) : [low, high];
    return from < to ? [from, to] : [from - 0.5, from + 0.5];
  }

  /** The place nearest to a step that has none. */
  edge(step) {
    const { steps, places } = this.scale;
    return (step < (steps[0] ?? 0) ? places[0] : places.at(-1)) ?? 0;
  }

  /** Look at a part of the x axis, given in its own unit; null: at all of it. */
  look(from, to) { this.page.look(this.over, [this.scale.step(from), this.scale.step(to)]); }

  /** The highest limit of its curves (total memory), 0 without one. */
  limits() {
    const totals = this.kind.limit ? this.names.map((name) => this.page.curve(this.kind.limit(name), this.over)?.ys.at(-1) || 0) : [];
    return [...new Set(totals)].filter((total) => total > 0).sort((a, b) => a - b);
  }
}
