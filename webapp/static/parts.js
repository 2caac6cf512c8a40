// Parts of a page that come anew every few seconds: what a person does there stays, and what is old is said to be.
import { age } from "./page.js";

const SILENCE = 10000; // ms that an answer is waited for
const SCROLLED = ".table-responsive, pre";
const NAMES = ["id", "href", "name", "value", "data-testid", "data-dialog", "aria-label"];

/** What is the same of an element before and after its part has come anew. */
function likeness(element) {
  const form = element.closest("form")?.getAttribute("action");
  return [element.localName, form, ...NAMES.map((name) => element.getAttribute(name))].join("\n");
}

const alike = (part, element) => [...part.querySelectorAll(element.localName)].filter((e) => likeness(e) === likeness(element));

// What is unfolded, scrolled or in focus stays so. htmx itself keeps the focus of what has an id.
let held = null;

function hold(part) {
  const focus = part.contains(document.activeElement) ? document.activeElement : null;
  held = {
    id: part.id,
    unfolded: [...part.querySelectorAll("details[open][data-key]")].map((e) => e.dataset.key),
    scrolled: [...part.querySelectorAll(SCROLLED)].map((e) => [e.scrollLeft, e.scrollTop]),
    focus,
    nth: focus ? alike(part, focus).indexOf(focus) : -1,
  };
}

function restore(part) {
  for (const key of held.unfolded) part.querySelector(`details[data-key="${CSS.escape(key)}"]`)?.setAttribute("open", "");
  [...part.querySelectorAll(SCROLLED)].forEach((e, i) => { [e.scrollLeft, e.scrollTop] = held.scrolled[i] || [0, 0]; });
  if (held.focus && !held.focus.isConnected && document.activeElement === document.body) alike(part, held.focus)[held.nth]?.focus({ preventScroll: true });
}

document.addEventListener("htmx:afterSwap", () => {
  const part = held && document.getElementById(held.id);
  if (part) restore(part);
});

// What is not this part's is not shown in its place: after the end of the session every address answers with the login.
const path = (address) => new URL(address, location.href).pathname;
const isAnother = ({ responsePath, finalRequestPath }) => responsePath && path(responsePath) !== path(finalRequestPath);

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, pathInfo, shouldSwap } = event.detail;
  if (isAnother(pathInfo)) {
    event.detail.shouldSwap = false;
    tell("Your session has ended, so this page gets nothing new. Reload it to log in again.");
  } else if (target.contains(document.activeElement?.closest("textarea"))) {
    event.detail.shouldSwap = false; // a text that is being written is not pulled away from under the hand
  } else if (shouldSwap) hold(target);
  if (!isAnother(pathInfo) && shouldSwap) fresh();
});

// A page that gets nothing new says so. Pages with a link of their own (live.js, try.js) say it themselves.
const badge = document.getElementById("cut-off");
let heard = Date.now();

function fresh() {
  heard = Date.now();
  if (badge) badge.hidden = true;
}

function tell(text) {
  if (!badge || document.getElementById("stale")) return;
  badge.textContent = text;
  badge.hidden = false;
}

const isPoll = (element) => (element.getAttribute("hx-trigger") || "").includes("every ");

function tellOld(event, why) {
  if (!isPoll(event.detail.elt)) { tell(`The service ${why}: try again.`); return; }
  const since = new Date(heard).toLocaleTimeString([], { hour12: false });
  tell(`As of ${since} (${age(heard)}): the service ${why}. This page catches up by itself.`);
}

document.addEventListener("htmx:beforeRequest", ({ detail }) => { if (isPoll(detail.elt)) detail.xhr.timeout = SILENCE; });
for (const kind of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(kind, (event) => tellOld(event, "does not answer"));
document.addEventListener("htmx:responseError", (event) => tellOld(event, `answers with an error (${event.detail.xhr.status})`));
