// The log of a run page: its end is followed, older lines come on scroll, and it is searched by node and text.
// The page holds a piece of it at most: where lines come at one end, those at the other go.
import { LogRows } from "./logrows.js";

const NEAR = 300; // px from an end at which the lines beyond are asked for
const FEW = 40; // lines that are wanted at least where a search goes through a long log
const TYPED = 300; // ms after the last key until a search begins
const PATIENCE = 15000; // ms that an answer is waited for
const AGAIN = 2000; // ms until the end of the log is read again where it could not be
const UP = ["ArrowUp", "PageUp", "Home"];
const SAY_EVERY = 15000; // ms between two sentences to a screen reader

const at = (id) => document.getElementById(id);

export class Log {
  /** `config`: {page: its address, older: the number to ask on from or null, names: {"attempt/rank": node}}. */
  constructor(config) {
    this.url = config.page;
    this.rows = new LogRows(at("log"), config.names);
    this.older = config.older; // null: the page holds the log's beginning
    this.newer = null; // null: the page holds the log's end
    this.waiting = 0; // lines that came unseen; NaN: some, not counted
    this.late = null; // what comes while lines are on their way
    this.stale = false; // the lines are not those that are wanted: no others may stand beside them
    this.asked = 0; // a new search makes the answers to an old one void
    this.unsaid = 0;
    this.framed = false;
    this.listen();
    this.note();
    this.toBottom();
  }

  get following() { return at("follow").checked; }

  listen() {
    at("follow").addEventListener("change", () => { if (this.following) this.toEnd(); });
    at("log-new").addEventListener("click", () => { this.toEnd(); at("log").focus(); });
    at("log").addEventListener("scroll", () => this.scrolled(), { passive: true });
    at("log").addEventListener("wheel", ({ deltaY }) => { if (deltaY < 0) this.leaveEnd(); }, { passive: true });
    at("log").addEventListener("keydown", ({ key }) => { if (UP.includes(key)) this.leaveEnd(); });
    new ResizeObserver(() => this.toBottom()).observe(at("log"));
    at("log-note").addEventListener("click", (event) => { if (event.target.closest("button")) this.goOn(); });
    at("log-node").addEventListener("change", () => this.search());
    at("log-text").addEventListener("input", () => { clearTimeout(this.typing); this.typing = setTimeout(() => this.search(), TYPED); });
    setInterval(() => this.say(), SAY_EVERY);
  }

  /** Take what a batch brought. */
  add(entries) {
    if (entries.some((entry) => !this.rows.knows(entry))) this.learn();
    const found = entries.filter((entry) => this.rows.matches(entry));
    if (!found.length) return;
    this.late?.push(...found);
    this.unsaid += found.length;
    if (this.newer === null && !this.following && this.rows.isFull(found.length)) this.newer = this.rows.last;
    if (this.newer === null && !this.stale) this.append(found);
    if (!this.following) this.waiting += found.length;
    this.tellWaiting();
  }

  append(entries) {
    this.rows.append(entries);
    if (this.following && this.rows.trimTop()) this.older = this.rows.first;
    this.note();
    this.toBottom();
  }

  /** So much came that nobody sends it line by line: what is followed is read anew, what is read stays. */
  fresh() {
    if (this.following) { this.readEnd(); return; }
    this.newer ??= this.rows.last;
    this.waiting = NaN;
    this.tellWaiting();
  }

  toEnd() {
    at("follow").checked = true;
    if (this.newer !== null) this.readEnd(); else this.toBottom();
    this.waiting = 0;
    this.tellWaiting();
  }

  /** Who moves up reads on: the next line must not pull the page away before the scrolling has begun. */
  leaveEnd() { if (at("log").scrollTop > 0) at("follow").checked = false; }

  /** Once a frame, and not at all in a tab that nobody sees: it asks for the layout. */
  toBottom() {
    if (this.framed || !this.following) return;
    this.framed = true;
    requestAnimationFrame(() => { this.framed = false; if (this.following) at("log").scrollTop = at("log").scrollHeight; });
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = at("log");
    const left = scrollHeight - scrollTop - clientHeight;
    const bottom = this.newer === null && left < 4;
    if (!this.framed) at("follow").checked = bottom;
    if (bottom) { this.waiting = 0; this.tellWaiting(); }
    if (scrollTop < NEAR && !bottom) this.goOlder();
    else if (left < NEAR && this.newer !== null) this.goNewer();
  }

  // ---- what is asked for

  search() {
    this.rows.want(at("log-node").value, at("log-text").value);
    const of = at("log-node").value;
    at("log-download").href = at("log-download").href.replace(/\?.*|$/, of ? `?node=${of}` : "");
    at("follow").checked = true;
    this.readEnd();
  }

  /** Ask for lines; null where a newer search has begun meanwhile. `take` gets each answer until it returns false. */
  async read(direction, from, take) {
    const mine = this.asked;
    this.late = [];
    for (let reached = from, more = true; more;) {
      const question = new URLSearchParams({ ...this.rows.wanted, ...(reached === null ? {} : { [direction]: reached }) });
      const answer = await fetch(`${this.url}?${question}`, { signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok || answer.redirected) throw new Error(`log: ${answer.status}`);
      const found = await answer.json();
      if (mine !== this.asked) return;
      this.rows.learn(found.names);
      reached = found.reached;
      more = take(found.entries, reached) && reached !== null;
    }
    this.late = null;
  }

  /** Begin to read; what is being read in another way is dropped. */
  async begin(words, direction, from, take) {
    const mine = ++this.asked;
    this.busy = direction;
    this.note(words);
    let failed = "";
    try { await this.read(direction, from, take); } catch { failed = "The lines could not be read: try again"; }
    if (mine !== this.asked) return;
    this.busy = null;
    this.late = null;
    this.note(failed);
    if (this.stale) setTimeout(() => { if (this.stale && !this.busy) this.readEnd(); }, AGAIN);
  }

  readEnd() {
    this.stale = true;
    return this.begin("Reading…", "before", null, (entries, reached) => {
      const begins = this.stale;
      if (begins) { this.rows.clear(); this.newer = null; this.waiting = 0; this.stale = false; }
      this.rows.prepend(entries);
      if (begins) this.rows.append(this.late.splice(0));
      this.older = reached;
      this.tellWaiting();
      this.toBottom();
      return this.rows.count < FEW;
    });
  }

  goOn() { if (this.stale) this.readEnd(); else this.goOlder(); }

  goOlder() {
    if (this.busy || this.stale || this.older === null) return;
    this.begin("Reading…", "before", this.older, (entries, reached) => {
      this.rows.prepend(entries);
      this.older = reached;
      if (this.rows.trimBottom()) this.newer = this.rows.last;
      return !entries.length;
    });
  }

  goNewer() {
    if (this.busy || this.stale) return;
    this.begin("", "after", this.newer, (entries, reached) => {
      this.rows.append(entries);
      if (reached === null) this.rows.append(this.late.splice(0));
      if (this.rows.trimTop(true)) this.older = this.rows.first;
      this.newer = reached;
      return !entries.length;
    });
  }

  /** A node's name that the page does not know yet: it was placed after the page was made. */
  async learn() {
    if (this.learning) return;
    this.learning = true;
    try {
      const answer = await fetch(`${this.url}?before=1`);
      if (answer.ok && !answer.redirected) this.rows.learn((await answer.json()).names);
    } catch { /* its number stands there until the next line asks again */ }
    setTimeout(() => { this.learning = false; }, 5000);
  }

  // ---- what is said

  /** Above the lines: a button for older ones, or why there are none. What is there stays, with its focus. */
  note(words = "") {
    const button = at("log-older");
    if (this.older === null) {
      if (button && document.activeElement === button) at("log").focus({ preventScroll: true });
      const text = words || this.about();
      if (button || at("log-note").textContent !== text) at("log-note").textContent = text;
    } else {
      const asks = button ?? Object.assign(document.createElement("button"), { type: "button", className: "btn btn-sm", id: "log-older" });
      asks.textContent = words || "Older lines";
      if (!button) at("log-note").replaceChildren(asks);
    }
  }

  about() {
    const sought = this.rows.wanted.text || this.rows.wanted.node;
    if (this.rows.count) return sought ? "No older line fits." : "Beginning of the log.";
    return sought ? "No line fits: look at all nodes, or for another text." : "Nothing yet: what the ranks print appears here.";
  }

  tellWaiting() {
    const button = at("log-new");
    button.hidden = this.waiting === 0;
    const count = Number.isNaN(this.waiting) ? "" : `${this.waiting} `;
    button.textContent = `${count}new line${this.waiting === 1 ? "" : "s"} ↓`;
  }

  say() {
    if (!this.unsaid || document.hidden) return;
    at("log-said").textContent = `${this.unsaid} new line${this.unsaid === 1 ? "" : "s"} in the log`;
    this.unsaid = 0;
  }
}
