// All curves of a page: each as a whole, and of the part that is looked at once more at its own zoom.
import { Curve, MOST } from "../series.js";

const OF_HOSTS = /^node\d+\//;
const SHARED = 60000; // points that all curves of hosts hold together, however many GPUs there are
const FEWEST = 500;

export class Curves {
  /** `known`: every series the run has. */
  constructor(known) {
    this.whole = new Map();
    this.parts = { step: new Map(), time: new Map() };
    this.known = new Set(known);
    this.share(this.known);
  }

  /** The curve as it is to be drawn now. */
  get(name, axis) { return this.parts[axis].get(name) ?? this.whole.get(name); }

  replace(series) {
    this.whole.clear();
    for (const [name, { points, tail }] of Object.entries(series)) this.keep(name, new Curve(points, tail, true));
    this.forget("step");
    this.forget("time");
  }

  /** Tell how many curves of hosts there are, by which each gets its share. */
  share(names) {
    const hosts = [...names].filter((name) => OF_HOSTS.test(name)).length;
    this.most = Math.max(FEWEST, Math.min(MOST, Math.floor(SHARED / Math.max(1, hosts))));
  }

  keep(name, curve) {
    if (OF_HOSTS.test(name)) curve.most = this.most;
    this.whole.set(name, curve);
    this.known.add(name);
  }

  /** Take a part of an axis, or the whole of series that were not in the first picture. */
  put(axis, span, curves) {
    for (const [name, curve] of curves) {
      if (span) { this.parts[axis].set(name, curve); continue; }
      for (const [x, value] of this.whole.get(name)?.pairs() ?? []) if (!(x <= curve.lastX)) curve.put(x, value); // came meanwhile
      this.keep(name, curve);
    }
  }

  /** Another part is looked at: what was read of the last one says nothing. */
  forget(axis) { this.parts[axis].clear(); }

  /** Add points as they come, of the names that a chart needs; `spans` says what is looked at of each axis. Returns the names. */
  add(points, spans, needed) {
    for (const [name, pairs] of Object.entries(points)) {
      if (!this.known.has(name)) this.known.add(name);
      else if (!needed.has(name)) continue; // clocks, error counts: no chart draws them
      if (!this.whole.has(name)) this.keep(name, new Curve());
      const whole = this.whole.get(name);
      for (const [x, value] of pairs) whole.put(x, value);
      for (const axis of ["step", "time"]) {
        const part = this.parts[axis].get(name);
        for (const [x, value] of part ? pairs : []) if (x <= spans[axis]?.[1]) part.put(x, value);
      }
    }
    return Object.keys(points);
  }

  /** [first, last] x of an axis, over the curves called `names`; null where there is no point. */
  extent(names) {
    const found = names.map((name) => this.whole.get(name)?.xs ?? []).filter((xs) => xs.length);
    return found.length ? [Math.min(...found.map((xs) => xs[0])), Math.max(...found.map((xs) => xs.at(-1)))] : null;
  }
}
