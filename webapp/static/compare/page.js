// Some runs beside each other: one metric of all, along steps, tokens or time. The address says what is shown.
import { savable } from "../charts/saving.js";
import { smoothed } from "../charts/smoothing.js";
import { Overlay, look } from "./overlay.js";

const config = JSON.parse(document.getElementById("compare").textContent);
const form = document.getElementById("view");
const note = document.getElementById("note");
const address = new URLSearchParams(location.search);
const told = (window.shardboard = { compared: null }); // what is drawn, for measurements: {metric, x, runs, at}

form.smooth.value = address.get("smooth") || "0";
form.log.checked = address.get("log") === "1";

const overlay = new Overlay(document.getElementById("chart"), config.runs);
let read = null; // what was read last: {metric, x, curves: run -> [[x, value]...], null where it has no such x}
let asked = 0; // a picture that was asked for before another one is not drawn after it

const view = () => ({ metric: form.metric.value, x: form.x.value, smooth: Number(form.smooth.value), log: form.log.checked });

/** Keep in the address what is shown, so that it can be sent on. */
function keep({ metric, x, smooth, log }) {
  const said = new URLSearchParams(config.runs.map((run) => ["run", run.id]));
  if (metric) said.set("metric", metric);
  if (x !== "step") said.set("x", x);
  if (smooth) said.set("smooth", smooth);
  if (log) said.set("log", "1");
  history.replaceState(null, "", `?${said}`);
  for (const link of document.querySelectorAll("[data-without]")) {
    const others = [...said].filter(([name, value]) => !(name === "run" && value === link.dataset.without));
    link.href = `?${new URLSearchParams(others)}`;
  }
}

const asking = () => new URLSearchParams([["name", form.metric.value], ["x", form.x.value], ...config.runs.map((run) => ["run", run.id])]);

async function load() {
  const now = ++asked, { metric, x } = view();
  if (!metric) { note.textContent = "None of these runs has told a metric yet."; return; }
  try {
    const answer = await fetch(`${config.series}?${asking()}`);
    if (!answer.ok) throw new Error(`${answer.status}`);
    const { curves } = await answer.json();
    if (now === asked) { read = { metric, x, curves }; draw(); }
  } catch {
    if (now !== asked) return;
    note.textContent = "The service does not answer. It is asked again.";
    setTimeout(load, 3000);
  }
}

/** Draw what was read last, whatever is being asked for. */
function draw() {
  document.getElementById("smooth-figure").textContent = view().smooth;
  if (!read) return;
  const { curves, metric, x } = read, shown = { ...view(), metric, x };
  overlay.draw(curves, shown, (xs, ys) => (shown.smooth ? smoothed(xs, ys, shown.smooth) : null));
  note.textContent = left(read);
  told.compared = { ...shown, runs: Object.keys(curves).length, at: performance.timeOrigin + performance.now() };
}

/** Say which runs have no curve here, and why. */
function left({ x, curves }) {
  const of = (found) => config.runs.filter((run) => found(curves[run.id])).map((run) => `#${run.id}`).join(", ");
  const none = of((pairs) => pairs && !pairs.length), unplaced = of((pairs) => pairs === null);
  return [none && `${none}: no point of this metric.`, unplaced && `${unplaced}: ${x} of its steps is not known.`].filter(Boolean).join(" ");
}

for (const key of document.querySelectorAll("[data-key-of]")) {
  const { stroke, dash } = look(config.runs.findIndex((run) => String(run.id) === key.dataset.keyOf));
  key.style.borderTop = `3px ${dash.length ? "dashed" : "solid"} ${stroke}`;
}
savable(overlay, "", `runs ${config.runs.map((run) => `#${run.id}`).join(", ")}`);
overlay.holder.querySelector("[data-csv]").addEventListener("click", ({ target }) => { target.href = `${config.csv}?${asking()}`; });
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", ({ target }) => { keep(view()); if (["metric", "x"].includes(target.name)) load(); else draw(); });
form.smooth.addEventListener("input", draw);
document.addEventListener("themechange", () => { overlay.shape = ""; draw(); });
keep(view());
load();
