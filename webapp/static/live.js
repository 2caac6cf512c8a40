// A live run page: every batch changes charts and log at once, and asks for the other parts that changed.
import { Charts } from "./charts.js";
import { Link } from "./link.js";
import { Log } from "./log.js";
import { age } from "./page.js";
import { figure } from "./series.js";

const config = JSON.parse(document.getElementById("live").textContent);
const EVERY = { progress: 5000, header: 1000, memory: 2000, answers: 2000 }; // ms between two refreshes for one reason; others: 300
const PARTS = { progress: "header" }; // what a reason refreshes, where that is not the part of its name

// ---- charts: the whole picture once, then batch by batch

let loading = null; // batches that came while the picture was on its way
let stalePicture = false;

async function loadPicture() {
  if (loading) { stalePicture = true; return; }
  loading = [];
  stalePicture = false;
  try {
    const answer = await fetch(`${config.series}?points=1500`);
    if (!answer.ok) throw new Error(`series: ${answer.status}`);
    charts.replace((await answer.json()).series);
    for (const points of loading) charts.add(points);
    loading = null;
    if (stalePicture) loadPicture();
  } catch {
    loading = null;
    setTimeout(loadPicture, 2000);
  }
}

const charts = new Charts();

// ---- figures and parts

const now = { step: null, loss: null, at: 0 };
const put = (name, text) => { for (const e of document.querySelectorAll(`[data-live="${name}"]`)) e.textContent = text; };

function showFigures() {
  if (now.step !== null) put("step", now.step);
  if (now.loss === null) return;
  const first = document.querySelector('[data-live="first-loss"]');
  if (first?.textContent === "–") first.textContent = figure(now.loss);
  put("last-loss", figure(now.loss));
}

const log = new Log(config.log);

const last = new Map(); // part -> when it was asked for
const planned = new Map(); // part -> when it is to be asked for, and the timer
const unseen = new Set(); // parts that changed while nobody saw the page
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const name of unseen) ask(name);
  unseen.clear();
});

function refresh(reason) {
  const name = PARTS[reason] ?? reason, plan = planned.get(name);
  const due = Math.max(performance.now(), (last.get(name) || 0) + (EVERY[reason] || 300));
  if (plan && plan.due <= due) return;
  clearTimeout(plan?.timer);
  planned.set(name, { due, timer: setTimeout(() => { planned.delete(name); ask(name); }, due - performance.now()) });
}

function ask(name) {
  const part = document.getElementById(`part-${name}`);
  if (!part) return;
  if (document.hidden) { unseen.add(name); return; }
  last.set(name, performance.now());
  // A question that is being answered is not pulled away from under the hand.
  if (part.querySelector("dialog[open]")) refresh(name); else window.htmx.trigger(part, "changed");
}

/** So much came that it is less to read everything again: after a long absence, or in a browser that is too slow. */
function beginAnew() {
  loadPicture();
  log.fresh();
  for (const part of document.querySelectorAll('[id^="part-"]')) refresh(part.id.slice("part-".length));
}

function take(batch) {
  if (batch.fresh) { beginAnew(); return; }
  charts.add(batch.points);
  if (loading) loading.push(batch.points);
  if (batch.step !== null) Object.assign(now, { step: batch.step, at: performance.now() });
  const loss = batch.points.loss?.at(-1);
  if (loss) Object.assign(now, { loss: loss[1], at: performance.now() });
  if (batch.step !== null || loss) showFigures();
  if (batch.log.length) log.add(batch.log);
  for (const name of batch.changed) if (name === "charts") loadPicture(); else refresh(name);
}

// A part that was made a moment before the newest batch must not turn the figures back.
document.body.addEventListener("htmx:afterSwap", () => {
  if (performance.now() - now.at < 2000) showFigures();
});

// ---- the state of the link

const WORDS = { live: "● live", polling: "○ every 2 s", waking: "○ catching up", away: "○ not live", out: "○ logged out" };
const badge = document.getElementById("stale");

function tell(state, since) {
  document.getElementById("link").textContent = WORDS[state];
  document.body.dataset.link = state;
  badge.hidden = state !== "away" && state !== "out";
  if (state === "away") badge.textContent = `As of ${new Date(since).toLocaleTimeString([], { hour12: false })} (${age(since)}): the service does not answer. Training goes on; this page catches up by itself.`;
  if (state === "out") badge.textContent = "Your session has ended, so this page gets nothing new. Reload it to log in again.";
}

loadPicture();
new Link(config, take, tell);
