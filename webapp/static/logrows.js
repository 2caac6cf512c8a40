// The lines that a page holds of a log, by their numbers; added at either end, taken away at the other.

const MOST = 1000; // lines
const SPARE = 100; // beyond that before some go at the top: whenever one does, all that follow are styled anew

export class LogRows {
  constructor(box, names) {
    this.box = box;
    this.wanted = { node: "", text: "" };
    this.names = new Map();
    this.learn(names);
    this.head(this.rows);
  }

  get rows() { return [...this.box.querySelectorAll(".log-row")]; }
  get count() { return this.box.childElementCount - 1; } // but the note above them
  get first() { return this.count ? Number(this.box.children[1].dataset.number) : null; }
  get last() { return this.count ? Number(this.box.lastElementChild.dataset.number) : 0; }

  isFull(more) { return this.count + more > MOST; }
  want(node, text) { this.wanted = { node, text }; }
  knows({ attempt, node }) { return this.names.has(`${attempt}/${node}`); }

  matches({ node, text }) {
    const { wanted } = this;
    return (!wanted.node || Number(wanted.node) === node) && text.toLowerCase().includes(wanted.text.toLowerCase());
  }

  /** Take in names, {"attempt/rank": node}, and offer each node in the choice above the log. */
  learn(names) {
    const choice = document.getElementById("log-node");
    for (const [key, name] of Object.entries(names)) {
      const [attempt, rank] = key.split("/");
      if (!this.names.has(key)) this.rename(attempt, rank, name);
      this.names.set(key, name);
      const there = [...choice.options].some((option) => option.value === rank);
      if (!there) choice.append(new Option(name, rank));
    }
    choice.hidden = choice.options.length < 3;
  }

  rename(attempt, rank, name) {
    for (const from of this.box.querySelectorAll(`[data-attempt="${attempt}"][data-node="${rank}"] > .from`)) from.textContent = `${name} │ `;
  }

  clear() { for (const row of this.rows) row.remove(); }

  append(entries) {
    const after = this.last;
    const made = entries.filter(({ number }) => number > after).map((entry) => this.make(entry));
    const before = this.count ? this.box.lastElementChild : null;
    this.box.append(...made);
    this.head(before ? [before, ...made] : made);
  }

  /** Put lines before all others; what is seen stays where it is. */
  prepend(entries) {
    const made = entries.map((entry) => this.make(entry));
    const height = this.box.scrollHeight;
    this.box.firstElementChild.after(...made);
    this.head(this.rows.slice(0, made.length + 1));
    this.box.scrollTop += this.box.scrollHeight - height;
  }

  /** Take away what is too much at the top, what is seen staying where it is if `still`; tell whether any was. */
  trimTop(still = false) {
    if (this.count <= MOST + SPARE) return false;
    const height = still ? this.box.scrollHeight : 0;
    for (const row of this.rows.slice(0, this.count - MOST)) row.remove();
    if (still) this.box.scrollTop -= height - this.box.scrollHeight;
    return true;
  }

  trimBottom() {
    const gone = this.rows.slice(MOST);
    for (const row of gone) row.remove();
    return gone.length > 0;
  }

  /** Say above the first line of an attempt which it is, where the log is of more than one. */
  head(rows) {
    rows.forEach((row, i) => {
      const before = i ? rows[i - 1].dataset.attempt : null;
      if (before && before !== row.dataset.attempt) row.dataset.head = `attempt ${row.dataset.attempt}`;
      else if (i) delete row.dataset.head;
    });
  }

  make({ number, attempt, node, text }) {
    const row = Object.assign(document.createElement("div"), { className: "log-row" });
    Object.assign(row.dataset, { number, attempt, node });
    const name = this.names.get(`${attempt}/${node}`) ?? `node ${node}`;
    row.append(Object.assign(document.createElement("span"), { className: "from", textContent: `${name} │ ` }), ...this.marked(text));
    return row;
  }

  /** The text in pieces, what is looked for marked. */
  marked(text) {
    const sought = this.wanted.text.toLowerCase(), low = text.toLowerCase();
    if (!sought || low.length !== text.length) return [text];
    const pieces = [];
    let from = 0;
    for (let found = low.indexOf(sought); found >= 0; found = low.indexOf(sought, from)) {
      pieces.push(text.slice(from, found), Object.assign(document.createElement("mark"), { textContent: text.slice(found, found + sought.length) }));
      from = found + sought.length;
    }
    return [...pieces, text.slice(from)];
  }
}
