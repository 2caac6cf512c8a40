// Asks for what is looked at and not there yet: a part at its own zoom, or figures of hosts when their chart comes in sight.
import { Curve } from "../series.js";

const POINTS = 1500; // of one curve
const MOST = 60000; // of all in one answer: many GPUs share them
const FEWEST = 200;
const NAMES = 60; // in one address
const REST = 150; // ms that a view has to stand still
const AGAIN = 3000; // ms after an answer that did not come

export class Windows {
  /** `wanted(axis)`: the names that charts in sight draw. `put(axis, span, curves)` takes what came. */
  constructor(address, wanted, put) {
    Object.assign(this, { address, wanted, put, asked: { step: new Set(), time: new Set() }, spans: { step: null, time: null }, generation: 0 });
    this.timers = {};
  }

  /** Look again in a moment at what is missing of an axis, of which `span` is shown. */
  look(axis, span, rest = REST) {
    if (String(span) !== String(this.spans[axis])) this.asked[axis] = new Set();
    this.spans[axis] = span;
    clearTimeout(this.timers[axis]);
    this.timers[axis] = setTimeout(() => this.ask(axis), rest);
  }

  /** Everything is to be asked for anew: the whole picture has been replaced. */
  forget() {
    this.generation += 1;
    this.asked = { step: new Set(), time: new Set() };
  }

  ask(axis) {
    const asked = this.asked[axis];
    const missing = [...this.wanted(axis)].filter((name) => !asked.has(name));
    const points = Math.max(FEWEST, Math.min(POINTS, Math.floor(MOST / Math.max(1, missing.length))));
    for (const name of missing) asked.add(name);
    for (let i = 0; i < missing.length; i += NAMES) this.fetch(axis, missing.slice(i, i + NAMES), points, asked);
  }

  async fetch(axis, names, points, asked) {
    const span = this.spans[axis], { generation } = this;
    const isOld = () => this.asked[axis] !== asked || generation !== this.generation; // looked elsewhere meanwhile
    try {
      const answer = await fetch(`${this.address}?${this.query(names, points, span)}`);
      if (!answer.ok) throw new Error(`series: ${answer.status}`);
      const { series } = await answer.json();
      if (isOld()) return;
      this.put(axis, span, new Map(names.map((name) => [name, new Curve(series[name]?.points, series[name]?.tail, true)])));
    } catch {
      if (isOld()) return;
      for (const name of names) asked.delete(name);
      this.look(axis, span, AGAIN);
    }
  }

  query(names, points, span) {
    const query = new URLSearchParams({ points });
    if (span) { query.set("from", span[0]); query.set("to", span[1]); }
    for (const name of names) query.append("name", name);
    return query;
  }
}
