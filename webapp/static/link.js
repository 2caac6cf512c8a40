// The link to the service: a socket that comes again with its cursor, and a poll while no socket opens.

const FIRST_WAIT = 500, LONGEST_WAIT = 5000; // ms before the next try
const POLL = 2000;
const SILENCE = 12000; // the server says something every 5 s; after this the line is dead

export class Link {
  /** `take(batch)` gets every batch; `tell(state, since)` hears live | polling | away | out. */
  constructor(config, take, tell) {
    Object.assign(this, { config, take, tell, cursor: config.cursor, wait: FIRST_WAIT, heard: Date.now(), socket: null, retry: 0, polling: false });
    setInterval(() => this.watch(), 1000);
    setInterval(() => this.poll(), POLL);
    addEventListener("online", () => this.soon(0));
    document.addEventListener("visibilitychange", () => { if (!document.hidden && !this.open) this.soon(0); });
    this.connect();
  }

  get open() { return this.socket?.readyState === WebSocket.OPEN; }

  connect() {
    clearTimeout(this.retry);
    if (this.socket && this.socket.readyState <= WebSocket.OPEN) return;
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${this.config.socket}`);
    this.socket = socket;
    socket.onopen = () => { this.wait = FIRST_WAIT; this.alive("live"); socket.send(JSON.stringify({ after: this.cursor })); };
    socket.onmessage = (event) => { if (socket === this.socket) { this.alive("live"); this.receive(JSON.parse(event.data)); } };
    socket.onclose = () => { if (socket === this.socket) this.soon(this.wait); };
  }

  soon(wait) {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), wait * (0.8 + Math.random() * 0.4));
    this.wait = Math.min(LONGEST_WAIT, Math.max(FIRST_WAIT, wait) * 2);
  }

  receive(batch) {
    if (!(batch.cursor > this.cursor)) return; // a heartbeat, or what a poll brought already
    this.cursor = batch.cursor;
    this.take(batch);
  }

  alive(state) { this.heard = Date.now(); this.tell(state, this.heard); }

  watch() {
    const silent = Date.now() - this.heard;
    if (this.open && silent > SILENCE) this.drop();
    if (!this.open && silent > 2500) this.tell("away", this.heard);
  }

  /** Leave a dead socket at once: its own closing may take minutes. */
  drop() {
    const dead = this.socket;
    this.socket = null;
    dead.close();
    this.connect();
  }

  async poll() {
    if (this.open || this.polling) return;
    this.polling = true;
    try {
      for (let more = true; more;) {
        const answer = await fetch(`${this.config.poll}?after=${this.cursor}`, { signal: AbortSignal.timeout(10000) });
        if (answer.redirected) { this.tell("out", this.heard); return; }
        if (!answer.ok) return;
        const batch = await answer.json();
        this.receive(batch);
        more = batch.more;
        if (!this.open) this.alive("polling");
      }
    } catch { /* no network: the next poll tries again, and the badge says since when */ } finally { this.polling = false; }
  }
}
