// What is marked on the time line of a chart: values that are not finite, limits, checkpoints, restarts, ends.
import { css } from "./looks.js";

const GLYPHS = { checkpoint: "▲", restart: "↻", resume: "↻", succeeded: "✓", stopped: "■", failed: "✕", evaluation: "◆" };
const NEAR = 7; // CSS pixels from the pointer at which a mark is named
const APART = 3, TEXTS_APART = 48; // CSS pixels between marks, and between their texts

/** Where a mark lies on the chart's x axis; null: nowhere. */
function place(mark, chart) {
  const over = chart.over === "time" ? "time" : chart.page.x;
  if (over === "time" && mark.at !== null) return mark.at;
  return mark.x === null ? null : chart.scale.place(mark.x);
}

/** [CSS pixels from the plot's left, mark] of those in sight, from left to right. */
function inSight(plot, chart) {
  const width = plot.bbox.width / devicePixelRatio;
  const all = [...chart.page.marks, ...(chart.over === "step" ? chart.page.evaluations() : [])];
  const found = all.map((mark) => [place(mark, chart), mark]).filter(([x]) => x !== null);
  return found.map(([x, mark]) => [plot.valToPos(x, "x"), mark]).filter(([at]) => at >= 0 && at <= width).sort((a, b) => a[0] - b[0]);
}

/** Draw all marks above the curves. */
export function drawMarks(plot, chart) {
  const { ctx } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  chart.placed = inSight(plot, chart);
  limits(plot, chart);
  events(plot, chart);
  odd(plot, chart);
  ctx.restore();
}

function limits(plot, chart) {
  const { ctx, bbox } = plot;
  ctx.strokeStyle = ctx.fillStyle = css("--tblr-red");
  ctx.setLineDash([6, 4]);
  for (const total of chart.limits()) {
    const y = plot.valToPos(total, "y", true);
    line(ctx, bbox.left, y, bbox.left + bbox.width, y);
    ctx.fillText(`limit ${chart.kind.format(total)}`, bbox.left + 4 * devicePixelRatio, y + 12 * devicePixelRatio);
  }
}

function line(ctx, x, y, toX, toY) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

/** Checkpoints and evaluations as a glyph at the foot; whatever began or ended training as an upright through all. */
function events(plot, chart) {
  const { ctx, bbox } = plot;
  ctx.strokeStyle = ctx.fillStyle = css("--sb-axis");
  ctx.setLineDash([1, 3]);
  ctx.textAlign = "center";
  const last = {}; // kind -> where its last one was drawn
  for (const [at, mark] of chart.placed) {
    const x = bbox.left + at * devicePixelRatio;
    const upright = mark.kind !== "checkpoint" && mark.kind !== "evaluation";
    if (at - (last[mark.kind] ?? -APART) < APART) continue;
    last[mark.kind] = at;
    if (upright) line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    ctx.fillText(GLYPHS[mark.kind] ?? "•", x, upright ? bbox.top - 2 : bbox.top + bbox.height - 1);
  }
  ctx.textAlign = "left";
}

/** A value that is not finite breaks its line; a dashed upright and its name say where. */
function odd(plot, chart) {
  const { ctx, bbox } = plot;
  ctx.strokeStyle = ctx.fillStyle = css("--tblr-red");
  ctx.setLineDash([4, 4]);
  const found = chart.names.flatMap((name) => [...chart.curve(name).odd]).map(([x, what]) => [chart.scale.place(x), what]);
  let lined = -Infinity, told = -Infinity;
  for (const [x, what] of found.filter(([x]) => x !== null).sort((a, b) => a[0] - b[0])) {
    const at = plot.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width || at - lined < APART * devicePixelRatio) continue;
    line(ctx, at, bbox.top, at, bbox.top + bbox.height);
    lined = at;
    if (at - told < TEXTS_APART * devicePixelRatio) continue;
    ctx.fillText(`✕ ${what}`, at + 3, bbox.top + 12 * devicePixelRatio);
    told = at;
  }
}

/** Say in words which marks the pointer is at. */
export function nameMark(plot, chart) {
  const said = chart.holder.querySelector("[data-said]");
  if (!said) return;
  const { left } = plot.cursor;
  const near = left >= 0 ? (chart.placed ?? []).filter(([at]) => Math.abs(at - left) <= NEAR) : [];
  const text = near.slice(0, 3).map(([, mark]) => `${GLYPHS[mark.kind] ?? "•"} ${mark.text}`).join(" · ");
  if (said.textContent !== text) said.textContent = text;
}
