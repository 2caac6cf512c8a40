// Curves of several runs over each other on one chart; smoothed, the raw line stays faintly beneath.
import { WHOLE_STEPS, axisLooks, colour, dash, reachable } from "../charts/looks.js";
import { Curve, figure } from "../series.js";

const TABLE_ROWS = 300;
const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, ...[1, 2, 3, 6, 12, 24, 48, 120, 240, 720].map((hours) => hours * 3600)];
const ROOM = 1.1; // above and below on a log scale
const UNITS = [[3600, "h"], [60, "min"], [1, "s"]];

/** How the nth run is drawn: runs differ in more than colour. */
export const look = (nth) => ({ stroke: colour(nth), dash: dash(nth) });

function lasted(seconds) {
  const [size, unit] = UNITS.find(([s]) => Math.abs(seconds) >= s) || UNITS[2];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

function counted(count) {
  const [size, unit] = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]].find(([s]) => Math.abs(count) >= s) || [1, ""];
  return `${Number((count / size).toPrecision(4))}${unit}`;
}

const PLACED = { step: (x) => String(Math.round(x)), time: lasted, tokens: counted };
const INCREMENTS = { step: WHOLE_STEPS, time: CLOCK };
const AXIS = { step: "step", time: "since the start", tokens: "tokens" };

export class Overlay {
  constructor(element, runs) {
    this.element = element;
    this.runs = runs;
    this.holder = element.parentElement;
    this.wanted = [];
    this.table = this.holder.querySelector("details");
    this.table.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.plot?.setSize(this.dimensions())).observe(element);
  }

  dimensions() { return { width: Math.max(200, this.element.clientWidth), height: 380 }; }

  /** `smooth(xs, ys)` returns the line that is drawn over the raw one, or null. */
  draw(curves, view, smooth) {
    this.view = view;
    this.title = view.metric;
    this.held = this.runs.map((run, nth) => ({ run, nth, curve: new Curve(curves[run.id] || []) })).filter(({ curve }) => curve.xs.length);
    const over = this.held.map(({ curve }) => smooth(curve.xs, curve.ys));
    const shape = JSON.stringify([view.metric, view.x, view.log, this.held.map(({ nth }) => nth), over.map(Boolean)]);
    const data = this.data(over);
    if (shape !== this.shape) this.make(shape, over, data);
    else this.plot?.setData(data);
    this.fillTable();
  }

  data(over) {
    const tables = this.held.map(({ curve }, i) => [curve.xs, curve.ys.map((y) => this.placed(y)), ...(over[i] ? [over[i].map((y) => this.placed(y))] : [])]);
    return tables.length > 1 ? uPlot.join(tables) : tables[0] || [[]];
  }

  /** A logarithm has no place for what is not above 0. */
  placed(y) { return this.view.log && y !== null && y <= 0 ? null : y; }

  make(shape, over, data) {
    this.plot?.destroy();
    this.plot = null;
    this.shape = shape;
    this.element.replaceChildren();
    if (this.held.length) this.plot = reachable(new uPlot(this.options(over), data, this.element));
    else this.element.append(Object.assign(document.createElement("p"), { className: "text-secondary m-2", textContent: "No point of this metric in these runs yet." }));
  }

  options(over) {
    const axis = axisLooks();
    const place = PLACED[this.view.x];
    const value = (_, y) => (y == null ? "–" : figure(y));
    const series = this.held.flatMap(({ run, nth }, i) => {
      const label = `#${run.id} ${run.name}`;
      const line = { label, ...look(nth), width: 1.6, spanGaps: false, points: { show: false }, value };
      return over[i] ? [{ ...line, label: `${label}, raw`, width: 1, alpha: 0.3 }, { ...line, width: 2 }] : [line];
    });
    return {
      ...this.dimensions(),
      series: [{ label: AXIS[this.view.x], value: (_, x) => (x == null ? "–" : place(x)) }, ...series],
      scales: { x: { time: false }, y: this.view.log ? { distr: 3, range: (_, low, high) => [low / ROOM, high * ROOM] } : {} },
      axes: [{ ...axis, size: 30, ...(INCREMENTS[this.view.x] && { incrs: INCREMENTS[this.view.x] }), values: (_, ticks) => ticks.map(place) }, { ...axis, size: 62, values: (_, ticks) => ticks.map((y) => (y == null ? "" : figure(y))) }],
      cursor: { y: false, points: { size: 7 }, focus: { prox: 24 } },
      focus: { alpha: 0.25 },
      legend: { live: true },
      hooks: { draw: [(plot) => this.marks(plot)] },
    };
  }

  /** A value that is not finite breaks its line; a cross in the run's colour at the top says where. */
  marks(plot) {
    const { ctx } = plot, { top, left, width } = plot.bbox;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui`;
    for (const { run, nth, curve } of this.held) {
      ctx.fillStyle = look(nth).stroke;
      for (const [x, what] of curve.odd) {
        const at = plot.valToPos(x, "x", true);
        if (at >= left && at <= left + width) ctx.fillText(`✕ #${run.id} ${what}`, at + 3, top + (12 + 12 * (nth % 4)) * devicePixelRatio);
      }
    }
    ctx.restore();
  }

  /** The same data as a table, for as long as it is unfolded: where each curve is, newest first. */
  fillTable() {
    if (!this.table.open || !this.held) return;
    const most = Math.max(5, Math.floor(TABLE_ROWS / Math.max(1, this.held.length)));
    const rows = this.held.flatMap(({ run, curve }) => curve.pairs().slice(-most).reverse().map(([x, y]) => [PLACED[this.view.x](x), `#${run.id} ${run.name}`, figure(y)]));
    this.table.querySelector("tbody").replaceChildren(...rows.map((cells) => {
      const tr = document.createElement("tr");
      tr.append(...cells.map((text) => Object.assign(document.createElement("td"), { className: "num", textContent: text })));
      return tr;
    }));
  }
}
