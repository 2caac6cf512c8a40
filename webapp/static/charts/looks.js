// Colours and dashes of curves: curves differ in more than colour.

const held = new Map(); // to ask for a style has the whole page styled anew
document.addEventListener("themechange", () => held.clear());

export function css(name) {
  if (!held.has(name)) held.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return held.get(name);
}

const PALETTE = ["--sb-line", "--sb-line-2", "--tblr-green", "--tblr-orange", "--tblr-purple", "--tblr-cyan", "--tblr-lime", "--tblr-yellow"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [1, 4], [10, 2, 2, 2, 2, 2], [4, 6]];
const GOLDEN = 137.508; // degrees: the angle by which neighbours in any number of colours differ most

/** The colour of the nth curve, or node; beyond the palette a turn of the colour circle each. */
export const colour = (nth) => nth < PALETTE.length ? css(PALETTE[nth]) : `hsl(${(nth * GOLDEN) % 360} 55% 50%)`;

export const dash = (nth) => DASHES[nth % DASHES.length];

/** Distances between ticks of an axis of steps: there is no tick at step 2.5. */
export const WHOLE_STEPS = [...Array(9).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));

/** What all axes have alike. */
export const axisLooks = () => ({ stroke: css("--sb-axis"), grid: { stroke: css("--sb-grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" });

/** A legend of many curves scrolls, and has to be reached by keyboard for that. */
export function reachable(plot) {
  const legend = plot.root.querySelector(".u-legend");
  const sizes = new ResizeObserver(() => {
    if (legend.scrollHeight > legend.clientHeight) legend.tabIndex = 0;
    if (!legend.isConnected) sizes.disconnect(); // its plot was drawn anew
  });
  sizes.observe(legend);
  return plot;
}
