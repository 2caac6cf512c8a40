// The link to the service: a socket that comes again with its cursor, and a poll while no socket speaks.
// A tab that nobody sees lets go of it after a while, and catches up when it is shown.

const FIRST_WAIT = 500, LONGEST_WAIT = 5000; // ms before the next try
const POLL = 2000;
const SILENCE = 12000; // the server says something every 5 s; after this the line is dead
const PATIENCE = 2500; // ms without a line until the page says so
const UNSEEN = 30000; // ms for which a hidden tab keeps its socket

export class Link {
  /** `take(batch)` gets every batch; `tell(state, since)` hears live | polling | waking | away | out. */
  constructor(config, take, tell) {
    Object.assign(this, { config, take, tell, cursor: config.cursor, wait: FIRST_WAIT, heard: Date.now(), woken: Date.now(), socket: null, retry: 0, polling: false, asleep: false });
    setInterval(() => this.watch(), 1000);
    setInterval(() => this.poll(), POLL);
    addEventListener("online", () => this.soon(0));
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.nod(); else this.wake(); });
    if (document.hidden) this.nod();
    this.connect();
  }

  /** The socket has been heard: one that only opened may lead to a proxy that passes nothing on. */
  get open() { return this.socket?.readyState === WebSocket.OPEN && this.socket.spoken === true; }

  connect() {
    clearTimeout(this.retry);
    if (this.asleep || (this.socket && this.socket.readyState <= WebSocket.OPEN)) return;
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${this.config.socket}`);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ after: this.cursor, acks: true }));
    socket.onmessage = (event) => { if (socket === this.socket) this.hear(socket, JSON.parse(event.data)); };
    socket.onclose = () => { if (socket === this.socket) this.soon(this.wait); };
    this.opened = Date.now();
  }

  /** Take what was sent, then say so: the service sends no more than a few batches that were not taken. */
  hear(socket, message) {
    socket.spoken = true;
    this.wait = FIRST_WAIT;
    this.alive("live");
    if (message.cursor === undefined) return; // a heartbeat
    this.receive(message);
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ seen: message.cursor }));
  }

  soon(wait) {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), wait * (0.8 + Math.random() * 0.4));
    this.wait = Math.min(LONGEST_WAIT, Math.max(FIRST_WAIT, wait) * 2);
  }

  receive(batch) {
    if (!batch.fresh && !(batch.cursor > this.cursor)) return; // what a poll brought already
    this.cursor = batch.cursor;
    this.take(batch);
  }

  alive(state) { this.heard = Date.now(); this.tell(state, this.heard); }

  watch() {
    if (this.asleep) return;
    const now = Date.now();
    if (this.socket?.readyState === WebSocket.OPEN && now - Math.max(this.heard, this.opened) > SILENCE) this.drop();
    if (!this.open && now - Math.max(this.heard, this.woken) > PATIENCE) this.tell("away", this.heard);
  }

  /** Leave a dead socket at once: its own closing may take minutes. */
  drop() {
    const dead = this.socket;
    this.socket = null;
    dead.close();
    this.connect();
  }

  nod() { this.doze = setTimeout(() => this.sleep(), UNSEEN); }

  sleep() {
    this.asleep = true;
    clearTimeout(this.retry);
    this.socket?.close();
    this.socket = null;
  }

  wake() {
    clearTimeout(this.doze);
    if (this.open) return;
    this.asleep = false;
    this.woken = Date.now();
    this.tell("waking", this.heard);
    this.soon(0);
  }

  async poll() {
    if (this.open || this.polling || this.asleep) return;
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
