// A live page of trials: what is said comes as its part made anew, at most five times a second.
import { Link } from "./link.js";
import { age } from "./page.js";

const config = JSON.parse(document.getElementById("live").textContent);
const EVERY = { trial: 200, history: 3000 }; // ms between two refreshes of a part
const last = new Map();
const planned = new Map();

function refresh(name) {
  if (planned.has(name) || !document.getElementById(`part-${name}`)) return;
  const wait = Math.max(0, (last.get(name) || 0) + EVERY[name] - performance.now());
  planned.set(name, setTimeout(() => {
    planned.delete(name);
    last.set(name, performance.now());
    window.htmx.trigger(`#part-${name}`, "changed");
  }, wait));
}

function take(batch) {
  if (batch.fresh || batch.changed.includes("trial")) for (const name of Object.keys(EVERY)) refresh(name);
}

const WORDS = { live: "● live", polling: "○ every 2 s", waking: "○ catching up", away: "○ not live", out: "○ logged out" };
const badge = document.getElementById("stale");

function tell(state, since) {
  document.getElementById("link").textContent = WORDS[state];
  badge.hidden = state !== "away" && state !== "out";
  if (state === "away") badge.textContent = `As of ${new Date(since).toLocaleTimeString([], { hour12: false })} (${age(since)}): the service does not answer. The models go on; this page catches up by itself.`;
  if (state === "out") badge.textContent = "Your session has ended, so this page gets nothing new. Reload it to log in again.";
}

new Link(config, take, tell);
