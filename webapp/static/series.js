// The points of one curve, sorted by x; a later point with the same x replaces the earlier.
// A value that is not finite arrives as its name ("NaN", "Infinity", "-Infinity") and is kept as null with a mark.

export class Curve {
  constructor(points = [], tail = []) {
    this.xs = [];
    this.ys = [];
    this.odd = new Map(); // x -> name
    this.tail = tail;
    for (const [x, value] of points) this.put(x, value);
  }

  get lastX() { return this.xs.length ? this.xs[this.xs.length - 1] : null; }

  put(x, value) {
    const y = typeof value === "string" ? null : value;
    if (y === null) this.odd.set(x, value); else this.odd.delete(x);
    if (!this.xs.length || x > this.lastX) { this.xs.push(x); this.ys.push(y); return; }
    const at = this.find(x);
    if (this.xs[at] === x) { this.ys[at] = y; return; }
    this.xs.splice(at, 0, x);
    this.ys.splice(at, 0, y);
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
export function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (Math.abs(value) < 1000 || unit === "TB") return `${unit === "B" ? value.toFixed(0) : Number(value.toPrecision(3))} ${unit}`;
    value /= 1000;
  }
  return "";
}
