// A chart's newest points as a table, for as long as it is unfolded.
import { PLANNED } from "./kinds.js";
import { moment } from "./words.js";

const ROWS = 200;

function row(cells) {
  const tr = document.createElement("tr");
  tr.append(...cells.map((text) => Object.assign(document.createElement("td"), { className: "num", textContent: text })));
  return tr;
}

/** Newest first. A value that is not finite is called by its name. */
export function fill(chart) {
  if (!chart.table?.open) return;
  const { kind } = chart;
  const rows = [];
  for (const name of chart.names.filter((n) => !n.startsWith(PLANNED))) {
    const { xs, ys, odd } = chart.curve(name);
    for (let i = xs.length - 1; i >= Math.max(0, xs.length - ROWS); i--) rows.push([xs[i], kind.label(name), odd.get(xs[i]) ?? kind.format(ys[i])]);
  }
  rows.sort((a, b) => b[0] - a[0]);
  const shown = rows.slice(0, ROWS).map(([x, label, value]) => row([chart.over === "step" ? x : moment(x), label, value]));
  chart.table.querySelector("tbody").replaceChildren(...shown);
}
