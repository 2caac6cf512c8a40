// How charts print moments and places on their x axis.
import { count } from "../series.js";

const DAY = 86400;
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const DATED = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false };

/** The clock's time, with its day where `span` (seconds) is longer than one. */
export const moment = (seconds, span = 0) => new Date(seconds * 1000).toLocaleString([], span > DAY ? DATED : CLOCK);

/** What the x axis of a chart shows: "step", "time" or "tokens". */
export const placed = (x, span) => ({ step: (at) => String(Math.round(at)), time: (at) => moment(at, span), tokens: count })[x];
