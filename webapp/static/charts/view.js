// How the charts are looked at: kept in the address, so that a link shows the same.

const SPAN = /^(-?[\d.]+)\.\.(-?[\d.]+)$/;
const REST = 250; // ms between two changes of the address: after a hundred within seconds some browsers throw
export const AXES = { step: "step", time: "time", tokens: "tokens" };

/** `x`: what charts over steps are drawn over. `spans`: of each axis that points come in, what is shown; null: all. */
export class View {
  /** `changed(what)` hears "looks" or the axis whose span has changed. */
  constructor(changed) {
    this.changed = changed;
    const given = new URLSearchParams(location.search);
    this.x = AXES[given.get("x")] || "step";
    this.log = given.get("log") === "1";
    this.smoothing = Math.min(0.99, Math.max(0, Number(given.get("smoothing")) || 0));
    this.spans = { step: span(given.get("steps")), time: span(given.get("times")) };
  }

  set(looks) {
    Object.assign(this, looks);
    this.keep();
    this.changed("looks");
  }

  /** Show `from` to `to` of an axis; null: all of it. */
  show(axis, shown) {
    this.spans[axis] = shown;
    this.keep();
    this.changed(axis);
  }

  /** At once, and while a hand drags on at most every REST. */
  keep() {
    this.unkept = Boolean(this.resting);
    if (this.resting) return;
    this.write();
    this.resting = setTimeout(() => { this.resting = 0; if (this.unkept) this.keep(); }, REST);
  }

  write() {
    const address = new URL(location.href);
    const put = (name, value) => (value ? address.searchParams.set(name, value) : address.searchParams.delete(name));
    put("x", this.x === "step" ? "" : this.x);
    put("log", this.log ? "1" : "");
    put("smoothing", this.smoothing ? String(this.smoothing) : "");
    put("steps", text(this.spans.step));
    put("times", text(this.spans.time));
    history.replaceState(history.state, "", address);
  }
}

const span = (given) => {
  const [, from, to] = SPAN.exec(given || "") || [];
  return Number(from) < Number(to) ? [Number(from), Number(to)] : null;
};
const text = (shown) => (shown ? shown.map((x) => String(Math.round(x * 1000) / 1000)).join("..") : "");
