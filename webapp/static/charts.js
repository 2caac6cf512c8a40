// The charts of a run page. What was drawn when is told in window.shardboard, for measurements.
import { Chart } from "./charts/chart.js";
import { Curves } from "./charts/curves.js";
import { KINDS, nameNodes, plain, spoken, unknown } from "./charts/kinds.js";
import { Moments } from "./charts/moments.js";
import { savable } from "./charts/saving.js";
import { Settings } from "./charts/settings.js";
import { View } from "./charts/view.js";
import { Windows } from "./charts/windows.js";
import { Scale, scaleOf } from "./charts/xaxis.js";

const told = (window.shardboard = { drawn: {}, drawnAt: {}, draws: [] }); // series -> last x, epoch ms; [series, x, ms]
const TOLD_DRAWS = 5000;
const NEAR = "300px"; // beyond the edge of the window within which charts are kept drawn

/** All charts of the page, the curves they share, and how they are looked at. */
export class Charts {
  constructor() {
    const config = JSON.parse(document.getElementById("live").textContent);
    nameNodes(config.names);
    this.config = config;
    this.curves = new Curves(config.known);
    this.view = new View((what) => this.looked(what));
    this.windows = new Windows(config.series, (axis) => this.missing(axis), (axis, span, curves) => { this.curves.put(axis, span, curves); this.draw(); });
    this.settings = new Settings(this.view, (name) => this.curves.known.has(name));
    this.moments = new Moments(config.marks, () => this.draw());
    this.sight = new IntersectionObserver((seen) => this.see(seen), { rootMargin: NEAR });
    this.plain = new Map(); // series -> its chart
    this.charts = [...document.querySelectorAll("[data-chart]")].map((element) => this.made(element, KINDS[element.dataset.chart]));
    this.pictured = this.asked = false;
    told.points = (name) => this.curves.whole.get(name)?.pairs() ?? [];
    document.addEventListener("themechange", () => { for (const chart of this.all()) chart.shape = ""; this.draw(); });
    this.pick();
  }

  made(element, kind) {
    const chart = new Chart(element, this, kind);
    element.chart = chart;
    savable(chart, this.config.csv, this.config.name);
    this.sight.observe(element);
    return chart;
  }

  all() { return [...this.charts, ...this.plain.values()]; }

  // ---- what charts ask for

  get marks() { return this.moments.marks; }

  curve(name, axis) { return this.curves.get(name, axis); }

  /** What steps are drawn over: themselves until it is there by which they are turned. */
  get x() { return !scaleOf(this.view.x) || this.curves.whole.get(scaleOf(this.view.x))?.whole ? this.view.x : "step"; }

  /** Where steps lie on the x axis. Read anew for each frame, since its curve grows. */
  scale(axis) {
    const name = axis === "step" ? scaleOf(this.x) : undefined;
    if (!name) return STILL;
    return (this.scaled ??= new Scale(this.curves.get(name, "step") ?? { xs: [], ys: [] }));
  }

  /** A mark at each evaluation that is known. */
  evaluations() {
    const xs = this.curves.get("eval/loss", "step")?.xs ?? [];
    return xs.map((x) => ({ x, at: null, kind: "evaluation", text: `evaluation at step ${x}` }));
  }

  /** Look at a part of an axis: within what there is, and at all of it where that is no less. */
  look(axis, span) {
    const whole = this.curves.extent(this.namesOver(axis));
    if (!span || !whole) { this.view.show(axis, null); return; }
    const width = Math.max(span[1] - span[0], axis === "step" ? 2 : 1);
    const from = Math.max(whole[0], Math.min(span[0], whole[1] - width));
    this.view.show(axis, from + width >= whole[1] && from <= whole[0] ? null : [from, from + width]);
  }

  drawn(chart) {
    const now = performance.timeOrigin + performance.now();
    for (const name of chart.names) {
      const x = chart.curve(name).lastX;
      if (x === null || told.drawn[name] === x) continue;
      told.drawn[name] = x;
      told.drawnAt[name] = now;
      told.draws.push([name, x, now]);
      if (told.draws.length > TOLD_DRAWS) told.draws.shift();
    }
  }

  // ---- what comes

  /** Take the whole picture in place of what there was. */
  replace(series) {
    this.curves.replace(series);
    this.windows.forget();
    this.pictured = true;
    this.moments.ask();
    this.pick();
    this.draw();
    this.ask();
  }

  add(points) {
    const before = this.curves.known.size;
    const names = new Set(this.curves.add(points, this.view.spans, this.needed));
    if (!names.size) return;
    if (this.curves.known.size > before) this.pick();
    this.draw((chart) => chart.wanted.some((name) => names.has(name)) || (chart.over === "step" && names.has(scaleOf(this.view.x))));
  }

  looked(what) {
    this.scaled = undefined;
    if (what === "step" || what === "time") this.curves.forget(what);
    this.settings.tell();
    this.draw();
    this.ask();
  }

  see(seen) {
    for (const { target, isIntersecting } of seen) target.chart.inSight = isIntersecting;
    this.draw(() => false);
    this.ask();
  }

  // ---- asking and drawing

  namesOver(axis) { return this.all().filter((chart) => chart.over === axis).flatMap((chart) => chart.wanted); }

  namesOf(chart) { return chart.kind.limit ? [...chart.wanted, ...chart.wanted.map(chart.kind.limit)] : chart.wanted; }

  /** The names that charts in sight draw and of which what is looked at is not there. */
  missing(axis) {
    const charts = this.all().filter((chart) => chart.over === axis && chart.inSight);
    const names = new Set(charts.flatMap((chart) => this.namesOf(chart)));
    if (axis === "step" && scaleOf(this.view.x)) names.add(scaleOf(this.view.x));
    const parts = this.view.spans[axis] !== null;
    return [...names].filter((name) => this.curves.known.has(name) && !(parts ? this.curves.parts[axis].has(name) : this.curves.whole.get(name)?.whole));
  }

  ask() {
    if (!this.pictured) return;
    for (const axis of ["step", "time"]) this.windows.look(axis, this.view.spans[axis]);
  }

  /** Which chart has which series; metrics that no chart knows get a plain one each, folded away. */
  pick() {
    const { known } = this.curves;
    for (const name of unknown(known).filter((n) => !this.plain.has(n))) this.plain.set(name, this.plainChart(name));
    for (const chart of this.all()) chart.pick(known);
    this.needed = new Set([scaleOf("time"), scaleOf("tokens"), ...this.all().flatMap((chart) => this.namesOf(chart))]);
    this.curves.share(this.needed);
    document.getElementById("more-metrics").hidden = !this.plain.size;
    document.getElementById("more-names").textContent = [...this.plain.keys()].map(spoken).join(", ");
    document.getElementById("hosts").hidden = !this.charts.some((chart) => chart.element.closest("#hosts") && chart.wanted.length);
    this.settings.tell();
  }

  plainChart(name) {
    const made = document.getElementById("plain-chart").content.cloneNode(true);
    const element = made.querySelector(".chart");
    made.querySelector("h3").textContent = spoken(name);
    element.dataset.series = name;
    element.setAttribute("aria-label", `${spoken(name)}: chart`);
    document.getElementById("more-charts").append(made);
    return this.made(element, plain(name));
  }

  /** Draw what has changed once before the next frame, however many batches came; charts out of sight when they come in. */
  draw(touched = () => true) {
    for (const chart of this.all()) if (touched(chart)) chart.stale = true;
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.scaled = undefined;
      for (const chart of this.all()) if (chart.stale && chart.inSight) chart.draw();
    });
  }
}

const STILL = new Scale();
