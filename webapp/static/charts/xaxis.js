// Where a step lies on the x axis: at itself, at the time of its line, or at the tokens that had been seen.

const SERIES = { time: "at", tokens: "num_tokens" };

/** The series by which steps are turned into `x`; undefined for steps themselves. */
export const scaleOf = (x) => SERIES[x];

/** y of a rising curve at `x`, between its points by the straight line; null outside of them. */
export function along(xs, ys, x) {
  let low = 0, high = xs.length - 1;
  if (high < 0 || x < xs[0] || x > xs[high]) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  if (x === xs[low] || xs[high] === xs[low]) return ys[low];
  return ys[low] + ((x - xs[low]) / (xs[high] - xs[low])) * (ys[high] - ys[low]);
}

/** Turns steps into x and back. `curve`: of the series above; without one nothing is turned. */
export class Scale {
  constructor(curve) {
    this.steps = [];
    this.places = [];
    this.turns = Boolean(curve);
    for (const [i, place] of (curve?.ys ?? []).entries()) {
      if (place === null || place <= this.places.at(-1)) continue; // only what rises can be turned back
      this.steps.push(curve.xs[i]);
      this.places.push(place);
    }
  }

  place(step) { return this.turns ? along(this.steps, this.places, step) : step; }

  step(place) {
    if (!this.turns) return place;
    const { places, steps } = this;
    if (!places.length) return 0;
    return along(places, steps, Math.min(Math.max(place, places[0]), places[places.length - 1]));
  }

  /** xs and all ys over them, without what has no place. */
  table([xs, ...columns]) {
    if (!this.turns) return [xs, ...columns];
    const places = xs.map((x) => this.place(x));
    const placed = places.map((_, i) => i).filter((i) => places[i] !== null);
    return [placed.map((i) => places[i]), ...columns.map((ys) => placed.map((i) => ys[i]))];
  }
}
