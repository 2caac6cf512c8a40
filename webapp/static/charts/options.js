// What uPlot is told of a chart: its lines, scales, axes and how it is handled.
import { PLANNED, looks } from "./kinds.js";
import { WHOLE_STEPS, axisLooks, css } from "./looks.js";
import { drawMarks, nameMark } from "./marks.js";
import { bind, gestures } from "./zoom.js";
import { placed } from "./words.js";

const BORDERS = ["solid", "dashed"]; // of a line's mark in the legend
const NEAR = 24; // CSS pixels from the pointer to a point whose value is told
const FAINT = 0.28; // of a line that is smoothed

export function options(chart) {
  const over = chart.over === "time" ? "time" : chart.page.x;
  return {
    ...chart.dimensions(),
    series: lines(chart, over),
    scales: { x: { time: over === "time", range: (_, low, high) => chart.range(low, high) }, y: upright(chart) },
    axes: axes(chart, over),
    cursor: handling(over),
    legend: { live: true, markers: { dash: (plot, nth) => BORDERS[chart.names.length > 1 && plot.series[nth].dash?.length ? 1 : 0] } },
    hooks: {
      ready: [(plot) => gestures(plot, chart)],
      draw: [(plot) => { drawMarks(plot, chart); chart.page.drawn(chart); }],
      setCursor: [(plot) => nameMark(plot, chart)],
      setSelect: [(plot) => selected(plot, chart)],
    },
  };
}

function upright(chart) {
  if (chart.isLog) return { distr: 3 };
  if (!chart.kind.zero) return {};
  return { range: (_, low, high) => [0, Math.max(high || 1, ...chart.limits()) * 1.03] };
}

function axes(chart, over) {
  const common = axisLooks();
  const print = (_, ticks) => ticks.map(placed(over, ticks.at(-1) - ticks[0]));
  const upright = (_, ticks) => ticks.map((y) => (y == null ? null : chart.kind.format(y)));
  const across = { ...common, size: 30, ...(over === "step" ? { incrs: WHOLE_STEPS } : { values: print, space: over === "time" ? 70 : 55 }) };
  return [across, { ...common, size: 62, values: upright }];
}

/** One upright line through all charts over the same axis; the part that is dragged over is this chart's own affair. */
function handling(over) {
  const moves = (kind) => kind === "mousemove" || kind === "mouseleave";
  return {
    y: false, points: { size: 7 }, hover: { prox: NEAR }, bind, drag: { x: true, y: false, setScale: false },
    sync: { key: `over ${over}`, scales: ["x", null], filters: { pub: moves, sub: moves } },
  };
}

function selected(plot, chart) {
  const { left, width } = plot.select;
  if (width < 3) return;
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  chart.look(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
}

function lines(chart, over) {
  const { kind, names } = chart;
  const print = placed(over, 0);
  const value = (_, y) => (y == null ? "–" : kind.format(y));
  const found = [{ label: over, value: (_, x) => (x == null ? "–" : print(x)) }];
  const real = names.filter((n) => !n.startsWith(PLANNED));
  for (const name of names) found.push(...drawn(chart, name, real.indexOf(name), value));
  return found;
}

/** The lines of one name: as measured, smoothed, and what older attempts left behind. */
function drawn(chart, name, nth, value) {
  const label = chart.kind.label(name);
  const quiet = { points: { show: false }, value };
  const tail = { label: `${label}, left behind`, stroke: css("--sb-tail"), dash: [3, 3], width: 1, ...quiet };
  if (name.startsWith(PLANNED)) return [{ label, stroke: css("--sb-tail"), dash: [5, 4], width: 1.4, ...quiet }];
  const look = looks(chart.kind, name, nth);
  // Evaluations are far apart: their points are shown.
  const measured = { label, ...look, width: 1.6, value, points: name.startsWith("eval/") ? { show: true, size: 5 } : { show: false } };
  const found = [measured];
  if (chart.smooths(name)) {
    found[0] = { ...measured, width: 1, alpha: FAINT };
    found.push({ ...measured, label: `${label}, smoothed`, width: 1.8 });
  }
  return chart.curve(name).tail.length ? [...found, tail] : found;
}
