// The charts of a run page, drawn with uPlot. What was drawn when is told in window.shardboard, for measurements.
import { Curve, figure, size } from "./series.js";

const told = (window.shardboard = { drawn: {}, drawnAt: {}, draws: [] }); // series -> last x, epoch ms; [series, x, ms]
const TOLD_DRAWS = 5000;
const TABLE_ROWS = 200;
const MANY = 6000; // points of one curve from which on the picture is asked for again, thinned

const names = JSON.parse(document.getElementById("live").textContent).names; // rank -> node

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["--sb-line", "--sb-line-2", "--tblr-green", "--tblr-orange", "--tblr-purple", "--tblr-cyan", "--tblr-lime", "--tblr-yellow"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]]; // curves differ in more than colour

const WHOLE = [...Array(8).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power)); // no tick at step 2.5

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

const only = (...wanted) => (names) => wanted.filter((n) => names.has(n));
const like = (pattern) => (names) => [...names].filter((n) => pattern.test(n)).sort();
const spoken = (name) => name.replace("eval/", "evaluation: ").replaceAll("_", " ");
const PARTS = ["step", "data", "forward_backward", "optimizer", "save", "evaluation", "other"].map((n) => `${n}_seconds`);
const PLANNED = "planned/";

/** What each chart shows: given all names, the series in it. `total` of a memory is its limit line. */
const KINDS = {
  loss: { pick: only("loss", "eval/loss"), label: (n) => n, axis: "step", format: figure },
  learning_rate: { pick: only("planned/learning_rate", "learning_rate"), label: (n) => (n.startsWith(PLANNED) ? "planned" : "learning rate"), axis: "step", format: figure },
  grad_norm: { pick: only("grad_norm"), label: () => "gradient norm", axis: "step", format: figure },
  speed: { pick: only("tokens_per_second", "trained_tokens_per_second"), label: (n) => (n.startsWith("trained") ? "trained tokens/s" : "tokens/s"), axis: "step", format: figure, zero: true },
  parts: { pick: only(...PARTS), label: (n) => spoken(n.replace("_seconds", "")), axis: "step", format: (y) => `${figure(y)} s`, zero: true },
  mfu: { pick: only("mfu"), label: () => "MFU", axis: "step", format: (y) => `${figure(100 * y)}%`, zero: true },
  rank_memory: { pick: like(/^(host_)?memory(_\w+)?$/), label: spoken, axis: "step", format: size, zero: true },
  memory: { pick: memorySeries, label: memoryLabel, axis: "time", format: size, zero: true },
};
const DULL = /^(epoch|node\d+\/.*)$/; // epochs say no more than steps; what is not of steps has its own chart

/** The kind of a metric that no chart above knows. */
const plain = (name) => ({ pick: only(name), label: spoken, axis: "step", format: figure });

function unknown(names) {
  const known = new Set(Object.values(KINDS).flatMap((kind) => kind.pick(names)));
  return [...names].filter((n) => !known.has(n) && !DULL.test(n)).sort();
}

function memorySeries(names) {
  const gpus = [...names].filter((n) => /^node\d+\/gpu\d+\/used$/.test(n));
  return (gpus.length ? gpus : [...names].filter((n) => /^node\d+\/ram_used$/.test(n))).sort();
}

function memoryLabel(name) {
  const [node, part] = name.split("/");
  const rank = node.replace("node", "");
  return `${names[rank] || `node ${rank}`} ${part === "ram_used" ? "host RAM" : part.replace("gpu", "GPU ")}`;
}

function row(cells) {
  const tr = document.createElement("tr");
  tr.append(...cells.map((text) => Object.assign(document.createElement("td"), { className: "num", textContent: text })));
  return tr;
}

class Chart {
  constructor(element, curves, kind = KINDS[element.dataset.chart]) {
    this.element = element;
    this.kind = kind;
    this.card = element.closest("[data-optional]");
    this.curves = curves;
    this.names = [];
    this.plot = null;
    this.table = element.parentElement.querySelector("details");
    this.table?.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.plot?.setSize(this.dimensions())).observe(element);
  }

  dimensions() {
    const tall = this.element.classList.contains("chart-tall");
    return { width: Math.max(200, this.element.clientWidth), height: tall ? 260 : 190 };
  }

  draw() {
    const names = this.kind.pick(new Set(this.curves.keys()));
    if (this.card) this.card.hidden = !names.length;
    if (!names.length) { this.empty(); return; }
    const shape = names.map((name) => `${name}${this.curves.get(name).tail.length ? "+" : ""}`).join();
    if (!this.plot || shape !== this.shape) this.make(names, shape);
    this.plot.setData(this.data());
    this.fillTable();
  }

  /** The same data as a table, newest first, for as long as it is unfolded. */
  fillTable() {
    if (!this.table?.open) return;
    const body = this.table.querySelector("tbody");
    const rows = [];
    for (const name of this.names.filter((n) => !n.startsWith(PLANNED))) {
      const { xs, ys, odd } = this.curves.get(name);
      for (let i = xs.length - 1; i >= Math.max(0, xs.length - TABLE_ROWS); i--) rows.push([xs[i], this.kind.label(name), odd.get(xs[i]) ?? this.kind.format(ys[i])]);
    }
    rows.sort((a, b) => b[0] - a[0]);
    body.replaceChildren(...rows.map(([x, label, value]) => row([this.kind.axis === "step" ? x : clock(x), label, value])));
  }

  empty() {
    this.plot?.destroy();
    this.plot = null;
    this.names = [];
    this.element.replaceChildren(Object.assign(document.createElement("p"), { className: "text-secondary m-2", textContent: "No point yet: drawn here as they arrive." }));
  }

  data() {
    const tables = [];
    for (const name of this.names) {
      const curve = this.curves.get(name);
      tables.push([curve.xs, curve.ys]);
      if (curve.tail.length) tables.push([curve.tail.map(([x]) => x), curve.tail.map(([, y]) => (typeof y === "string" ? null : y))]);
    }
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  make(names, shape) {
    this.plot?.destroy();
    this.shape = shape;
    this.names = names;
    this.element.replaceChildren();
    this.plot = new uPlot(this.options(), this.data(), this.element);
  }

  options() {
    const { kind } = this;
    const axis = { stroke: css("--sb-axis"), grid: { stroke: css("--sb-grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const value = (_, y) => (y == null ? "–" : kind.format(y));
    const series = [{ label: kind.axis, value: kind.axis === "step" ? (_, x) => (x == null ? "–" : String(x)) : (_, x) => (x == null ? "–" : clock(x)) }];
    this.names.forEach((name, i) => {
      if (name.startsWith(PLANNED)) { series.push({ label: kind.label(name), stroke: css("--sb-tail"), dash: [5, 4], width: 1.4, points: { show: false }, value }); return; }
      const nth = i - this.names.filter((n) => n.startsWith(PLANNED)).length;
      series.push({ label: kind.label(name), stroke: css(PALETTE[nth % PALETTE.length]), dash: DASHES[nth % DASHES.length], width: 1.6, points: this.sparse(name), value });
      if (this.curves.get(name).tail.length) series.push({ label: `${kind.label(name)}, left behind`, stroke: css("--sb-tail"), dash: [3, 3], width: 1, points: { show: false }, value });
    });
    return {
      ...this.dimensions(),
      series,
      scales: { x: { time: kind.axis === "time" }, y: kind.zero ? { range: (_, low, high) => [0, this.limit(high)] } : {} },
      axes: [{ ...axis, size: 30, ...(kind.axis === "time" ? { values: (_, ticks) => ticks.map(clock) } : { incrs: WHOLE }) }, { ...axis, size: 62, values: (_, ticks) => ticks.map(kind.format) }],
      cursor: { y: false, points: { size: 7 } },
      legend: { live: true },
      hooks: { draw: [(plot) => this.drawn(plot)] },
    };
  }

  /** Evaluations are far apart: their points are shown. */
  sparse(name) { return name.startsWith("eval/") ? { show: true, size: 5 } : { show: false }; }

  limit(high) {
    const totals = this.names.map((n) => this.curves.get(n.replace("ram_used", "ram_total").replace("/used", "/total"))?.ys.at(-1) || 0);
    return Math.max(high || 1, ...totals) * 1.03;
  }

  drawn(plot) {
    this.marks(plot);
    const now = performance.timeOrigin + performance.now();
    for (const name of this.names) {
      const x = this.curves.get(name).lastX;
      if (x === null || told.drawn[name] === x) continue;
      told.drawn[name] = x;
      told.drawnAt[name] = now;
      told.draws.push([name, x, now]);
      if (told.draws.length > TOLD_DRAWS) told.draws.shift();
    }
  }

  /** A value that is not finite breaks its line; here a dashed upright and its name say where. */
  marks(plot) {
    const { ctx } = plot;
    const { top, height, left, width } = plot.bbox;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--tblr-red");
    ctx.setLineDash([4, 4]);
    ctx.font = `${11 * devicePixelRatio}px system-ui`;
    for (const name of this.names) {
      for (const [x, what] of this.curves.get(name).odd) {
        const at = plot.valToPos(x, "x", true);
        if (at < left || at > left + width) continue;
        ctx.beginPath();
        ctx.moveTo(at, top);
        ctx.lineTo(at, top + height);
        ctx.stroke();
        ctx.fillText(`✕ ${what}`, at + 3, top + 12 * devicePixelRatio);
      }
    }
    ctx.restore();
  }
}

/** All charts of the page and the curves they share. */
export class Charts {
  constructor(askAgain) {
    this.curves = new Map();
    this.askAgain = askAgain;
    this.charts = [...document.querySelectorAll("[data-chart]")].map((element) => new Chart(element, this.curves));
    this.plain = new Map(); // series -> its chart
    this.asked = false;
    told.points = (name) => this.curves.get(name)?.pairs() ?? [];
    document.addEventListener("themechange", () => { for (const chart of this.all()) chart.shape = ""; this.draw(); });
  }

  /** Take the whole picture in place of what there was. */
  replace(series) {
    this.curves.clear();
    for (const [name, { points, tail }] of Object.entries(series)) this.curves.set(name, new Curve(points, tail));
    this.draw();
  }

  /** Metrics that no chart knows get a plain one each, folded away. */
  drawUnknown() {
    const found = unknown(new Set(this.curves.keys()));
    for (const name of found.filter((n) => !this.plain.has(n))) {
      const made = document.getElementById("plain-chart").content.cloneNode(true);
      const element = made.querySelector(".chart");
      made.querySelector("h3").textContent = spoken(name);
      element.dataset.series = name;
      document.getElementById("more-charts").append(made);
      this.plain.set(name, new Chart(element, this.curves, plain(name)));
    }
    document.getElementById("more-metrics").hidden = !this.plain.size;
    document.getElementById("more-names").textContent = [...this.plain.keys()].map(spoken).join(", ");
  }

  add(points) {
    for (const [name, pairs] of Object.entries(points)) {
      if (!this.curves.has(name)) this.curves.set(name, new Curve());
      const curve = this.curves.get(name);
      for (const [x, value] of pairs) curve.put(x, value);
      if (curve.xs.length > MANY) this.askAgain();
    }
    if (Object.keys(points).length) this.draw();
  }

  all() { return [...this.charts, ...this.plain.values()]; }

  /** Draw once before the next frame, however many batches came. */
  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.drawUnknown(); for (const chart of this.all()) chart.draw(); });
  }
}
