// The points of one curve, sorted by x; a later point with the same x replaces the earlier.
// A value that is not finite arrives as its name ("NaN", "Infinity", "-Infinity") and is kept as null with a mark.

export const MOST = 3000; // points that a curve holds, twice as many as a picture of it has; beyond, it is thinned as webapp/runs/thinning.py does
const PER_BUCKET = 5; // of the thinned curve, of which the first, least, greatest and last point stay, and one that is not finite

export class Curve {
  /** `whole`: it holds all of its series, and not only what came since the page was opened. */
  constructor(points = [], tail = [], whole = false) {
    this.xs = [];
    this.ys = [];
    this.odd = new Map(); // x -> name
    this.tail = tail;
    this.whole = whole;
    this.most = MOST;
    for (const [x, value] of points) this.put(x, value);
  }

  get lastX() { return this.xs.length ? this.xs[this.xs.length - 1] : null; }

  put(x, value) {
    const y = typeof value === "string" ? null : value;
    if (y === null) this.odd.set(x, value); else this.odd.delete(x);
    if (!this.xs.length || x > this.lastX) {
      this.xs.push(x);
      this.ys.push(y);
      if (this.xs.length > this.most) this.thin();
      return;
    }
    const at = this.find(x);
    if (this.xs[at] === x) { this.ys[at] = y; return; }
    this.xs.splice(at, 0, x);
    this.ys.splice(at, 0, y);
  }

  /** Keep fewer points that look the same: a page that is left open for days holds no more than one just opened. */
  thin() {
    const kept = [...this.kept()].sort((a, b) => a - b);
    this.xs = kept.map((i) => this.xs[i]);
    this.ys = kept.map((i) => this.ys[i]);
    const left = new Set(this.xs);
    for (const x of this.odd.keys()) if (!left.has(x)) this.odd.delete(x);
  }

  kept() {
    const { xs, ys } = this;
    const kept = new Set();
    const width = ((xs[xs.length - 1] - xs[0]) * PER_BUCKET) / this.most;
    for (let start = 0; start < xs.length;) {
      const bucket = Math.floor((xs[start] - xs[0]) / width);
      let end = start, low = -1, high = -1, odd = -1;
      for (; end < xs.length && Math.floor((xs[end] - xs[0]) / width) === bucket; end++) {
        if (ys[end] === null) { if (odd < 0) odd = end; continue; }
        if (low < 0 || ys[end] < ys[low]) low = end;
        if (high < 0 || ys[end] > ys[high]) high = end;
      }
      for (const i of [start, low, high, odd, end - 1]) if (i >= 0) kept.add(i);
      start = end;
    }
    return kept;
  }

  /** [x, value] in order, a value that is not finite by its name. */
  pairs() { return this.xs.map((x, i) => [x, this.odd.get(x) ?? this.ys[i]]); }

  /** Index of the first point whose x is not below `x`. */
  find(x) {
    let low = 0, high = this.xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.xs[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  }
}

/** A number as webapp/show.py prints metrics: four digits. */
export const figure = (value) => typeof value === "string" ? value : String(Number(value.toPrecision(4)));

/** Bytes as webapp/show.py prints them. */
export const size = (bytes) => scaled(bytes, ["B", "kB", "MB", "GB", "TB"]);

/** A count in three digits: 12.3 M. */
export const count = (number) => scaled(number, ["", "k", "M", "G", "T"]).trim();

function scaled(number, units) {
  let value = number;
  for (const unit of units) {
    if (Math.abs(value) < 1000 || unit === units.at(-1)) return `${unit === units[0] ? value.toFixed(0) : Number(value.toPrecision(3))} ${unit}`;
    value /= 1000;
  }
  return "";
}
