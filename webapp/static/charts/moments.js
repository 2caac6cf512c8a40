// Checkpoints, restarts and ends of the run, asked for again when the parts of the page that list them come anew.

const REST = 2000; // ms between two questions
const PARTS = ["part-checkpoints", "part-history"];

export class Moments {
  /** `came()` is told when there are others. `marks`: [{x: step or null, at: seconds or null, kind, text}]. */
  constructor(address, came) {
    Object.assign(this, { address, came, marks: [], planned: 0, asked: -REST });
    document.body.addEventListener("htmx:afterSwap", ({ detail }) => { if (PARTS.includes(detail.target.id)) this.ask(); });
  }

  ask() {
    if (this.planned) return;
    this.planned = setTimeout(() => this.fetch(), Math.max(0, this.asked + REST - performance.now()));
  }

  async fetch() {
    this.planned = 0;
    this.asked = performance.now();
    try {
      const answer = await fetch(this.address);
      if (!answer.ok) return; // with the next change they are asked for again
      ({ marks: this.marks } = await answer.json());
      this.came();
    } catch { /* no network: the whole picture is read again once there is one */ }
  }
}
