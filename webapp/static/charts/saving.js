// A chart as a picture and as a file of its numbers.
import { PLANNED } from "./kinds.js";

const PAD = 12, LINE = 18; // CSS pixels

/** The buttons beneath each chart. `address`: of the file of numbers. */
export function savable(chart, address, runName) {
  chart.holder.querySelector("[data-png]")?.addEventListener("click", () => png(chart, runName));
  const csv = chart.holder.querySelector("[data-csv]");
  csv?.addEventListener("click", () => { csv.href = `${address}?${new URLSearchParams(numbers(chart).map((name) => ["name", name]))}`; });
}

const numbers = (chart) => chart.wanted.filter((name) => !name.startsWith(PLANNED));

function png(chart, runName) {
  if (!chart.plot) return;
  picture(chart, `${runName} · ${chart.title}`).toBlob((blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${fileName(runName)}-${fileName(chart.title)}.png` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}

const fileName = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";

/** The canvas with what stands around it on the page: a background, the title, and which line is which. */
function picture(chart, title) {
  const drawn = chart.plot.ctx.canvas, scale = devicePixelRatio;
  const keys = legend(chart, drawn.width / scale);
  const made = document.createElement("canvas");
  made.width = drawn.width + 2 * PAD * scale;
  made.height = drawn.height + (2 * PAD + LINE + keys.height) * scale;
  const ctx = made.getContext("2d");
  const around = getComputedStyle(chart.holder.closest(".card"));
  ctx.fillStyle = around.backgroundColor;
  ctx.fillRect(0, 0, made.width, made.height);
  ctx.drawImage(drawn, PAD * scale, (PAD + LINE) * scale);
  ctx.scale(scale, scale);
  ctx.fillStyle = around.color;
  ctx.font = "600 13px system-ui";
  ctx.fillText(title, PAD, PAD + 10, drawn.width / scale);
  keys.draw(ctx, PAD, PAD + LINE + drawn.height / scale);
  return made;
}

function legend(chart, width) {
  const rows = [[]];
  let x = 0;
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = "11px system-ui";
  for (const line of chart.plot.series.slice(1)) {
    const wide = 30 + ruler.measureText(line.label).width + 12;
    if (x + wide > width && rows.at(-1).length) { rows.push([]); x = 0; }
    rows.at(-1).push({ line, x });
    x += wide;
  }
  return { height: rows.length * LINE, draw: (ctx, left, top) => rows.forEach((row, i) => row.forEach((key) => drawKey(ctx, key, left + key.x, top + (i + 0.5) * LINE))) };
}

function drawKey(ctx, { line }, x, y) {
  ctx.save();
  ctx.globalAlpha = line.alpha ?? 1;
  ctx.strokeStyle = line.stroke();
  ctx.setLineDash(line.dash ?? []);
  ctx.lineWidth = line.width;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + 24, y);
  ctx.stroke();
  ctx.restore();
  ctx.font = "11px system-ui";
  ctx.fillText(line.label, x + 30, y + 4);
}
