// Exponential smoothing that looks the same at every zoom.

const THOUSAND = 1000;

/**
 * The exponential moving average of `ys` over `xs`, without the pull of its start: each value is the sum of all
 * before it, weighted by `weight` ** distance, by the sum of the weights (the bias correction of Kingma and Ba, Adam,
 * section 3). The distance of two neighbours is 1, or a thousandth of what is shown where they are closer than that.
 * null, which is not finite, breaks the line and begins anew.
 */
export function smoothed(xs, ys, weight) {
  const unit = (xs[xs.length - 1] - xs[0]) / Math.min(THOUSAND, Math.max(1, xs.length - 1)) || 1;
  let sum = 0, weights = 0, before = xs[0];
  return ys.map((y, i) => {
    if (y === null) { sum = weights = 0; return null; }
    const kept = weight ** ((xs[i] - before) / unit);
    before = xs[i];
    sum = sum * kept + y;
    weights = weights * kept + 1;
    return sum / weights;
  });
}
