// Zoom and pan: drag, shift-drag, wheel with ctrl, two fingers, and keys on a chart in focus.

const CLOSER = 0.8, PANNED = 0.2; // of what is shown, a key
const WHEEL = 0.0016; // of a zoom a pixel

/** Buttons of uPlot: a drag with shift is ours; a double click shows all. */
export const bind = {
  mousedown: (plot, _, handle) => (event) => { if (event.shiftKey) plot.over.dispatchEvent(new CustomEvent("pan", { detail: event })); else handle(event); return null; },
  dblclick: (plot) => () => { plot.over.dispatchEvent(new CustomEvent("all")); return null; },
};

const shown = (plot) => [plot.scales.x.min, plot.scales.x.max];

function zoom(plot, chart, factor, centre) {
  const [from, to] = shown(plot);
  const around = centre ?? (from + to) / 2;
  chart.look(around - (around - from) * factor, around + (to - around) * factor);
}

function pan(plot, chart, share) {
  const [from, to] = shown(plot);
  chart.look(from + (to - from) * share, to + (to - from) * share);
}

export function gestures(plot, chart) {
  const { over } = plot;
  over.addEventListener("all", () => chart.page.look(chart.over, null));
  over.addEventListener("pan", ({ detail }) => drag(plot, chart, detail));
  over.addEventListener("wheel", (event) => wheel(plot, chart, event), { passive: false });
  fingers(plot, chart);
  chart.element.onkeydown = (event) => key(plot, chart, event);
}

function drag(plot, chart, down) {
  const [from, to] = shown(plot);
  const width = plot.over.clientWidth;
  const move = (event) => {
    const by = ((down.clientX - event.clientX) / width) * (to - from);
    chart.look(from + by, to + by);
  };
  const done = () => { removeEventListener("mousemove", move); removeEventListener("mouseup", done); };
  addEventListener("mousemove", move);
  addEventListener("mouseup", done);
}

function wheel(plot, chart, event) {
  if (!event.ctrlKey) return; // the page scrolls
  event.preventDefault();
  zoom(plot, chart, Math.exp(event.deltaY * WHEEL), plot.posToVal(event.offsetX, "x"));
}

/** Two fingers take what is under them along; one reads, and scrolls the page up and down. */
function fingers(plot, chart) {
  const down = new Map(); // pointer -> CSS pixels from the plot's left
  let held = null; // what lay under the two fingers
  const at = (event) => event.clientX - plot.over.getBoundingClientRect().left;
  plot.over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    down.set(event.pointerId, at(event));
    held = down.size === 2 ? [...down.values()].map((x) => plot.posToVal(x, "x")) : null;
  });
  plot.over.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return;
    down.set(event.pointerId, at(event));
    if (held) pinch(plot, chart, held, [...down.values()]);
    else plot.setCursor({ left: at(event), top: event.offsetY });
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) plot.over.addEventListener(end, (event) => { down.delete(event.pointerId); held = null; });
}

/** Show the part in which `held` (two x) lie under the fingers at `pixels`. */
function pinch(plot, chart, held, pixels) {
  const apart = pixels[1] - pixels[0];
  if (Math.abs(apart) < 20) return;
  const each = (held[1] - held[0]) / apart; // of x, a pixel
  if (!(each > 0)) return;
  const from = held[0] - pixels[0] * each;
  chart.look(from, from + plot.over.clientWidth * each);
}

const KEYS = {
  "+": (plot, chart) => zoom(plot, chart, CLOSER),
  "=": (plot, chart) => zoom(plot, chart, CLOSER),
  "-": (plot, chart) => zoom(plot, chart, 1 / CLOSER),
  0: (_, chart) => chart.page.look(chart.over, null),
  ArrowLeft: (plot, chart) => pan(plot, chart, -PANNED),
  ArrowRight: (plot, chart) => pan(plot, chart, PANNED),
};

function key(plot, chart, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own zoom
  if (event.shiftKey && event.key.startsWith("Arrow")) read(plot, event.key === "ArrowRight" ? 1 : -1);
  else if (KEYS[event.key]) KEYS[event.key](plot, chart);
  else return;
  event.preventDefault();
}

/** Move the line that values are read at to the next point. */
function read(plot, by) {
  const [xs] = plot.data;
  const next = Math.min(xs.length - 1, Math.max(0, (plot.cursor.idx ?? (by > 0 ? -1 : xs.length)) + by));
  plot.setCursor({ left: plot.valToPos(xs[next], "x"), top: 10 });
}
