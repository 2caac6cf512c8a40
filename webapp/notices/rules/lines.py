"""Of metrics: numbers that are not finite, a loss that jumps, steps that do not come.

A spike is a loss above median + K * 1.4826 * MAD of the WINDOW finite losses before it, and above all of them. MAD is
the median of the distances to the median; times 1.4826 it estimates the standard deviation of normal noise and, unlike
that, isn't moved by a few outliers: B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers (1993), whose
modified z-score 0.6745 (x - median) / MAD is the same number. They call 3.5 an outlier; a run has a hundred thousand
steps and heavier tails, so K is 10: in 200,000 losses with a log-normal noise of 30% none was called a spike, with 8
and a window of 50 it were 27. Where the noise is less than 2% of the median, 2% of it is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ..kinds import Kind
from .verdict import Level, Verdict

WINDOW = 100
FEWEST = 30  # losses before which nothing is called a spike
K = 10.0
TO_SIGMA = 1.4826
LEAST_NOISE = 0.02
WATCHED = {"loss": "the loss", "grad_norm": "the norm of the gradient"}
STEPS = 3  # times the median between two lines, before there is said to be no progress
INTERVALS = 20


class MetricsLine(NamedTuple):
    """`at`: when it was written; `received`: when it came here. Both in seconds since the epoch."""

    step: int
    at: float
    received: float
    numbers: dict[str, float]


def non_finite(lines: Sequence[MetricsLine]) -> list[Verdict]:
    """Return a verdict on each metric that these lines, all since the last look, hold."""
    return [verdict for name in WATCHED if (verdict := _finiteness(name, [x for x in lines if name in x.numbers]))]


def _finiteness(name: str, lines: Sequence[MetricsLine]) -> Verdict | None:
    if not lines:
        return None
    odd = [line for line in lines if not math.isfinite(line.numbers[name])]
    span = (lines[0].at, lines[-1].at)
    if not odd:
        return Verdict(Kind.NON_FINITE, name, Level.GOOD, *span)
    value = _odd(odd[-1].numbers[name])
    text = f"{WATCHED[name].capitalize()} is {value} at step {odd[-1].step}"
    return Verdict(Kind.NON_FINITE, name, Level.BAD, odd[0].at, span[1], value, f"{text}.")


def _odd(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class Losses(NamedTuple):
    """What the rule of spikes remembers: the last finite losses, and while one lasts the loss at which it is over."""

    window: tuple[float, ...] = ()
    over: float | None = None


def spike(lines: Sequence[MetricsLine], losses: Losses) -> tuple[Verdict | None, Losses]:
    """Return a verdict on these lines, all since the last look, and what to remember; None: none has a finite loss.

    A spike is over at the first loss below median + K/2 * 1.4826 * MAD, as they were before it; until then nothing is
    taken into the window, so one that stays up is told of as long as it does.
    """
    highest: tuple[float, MetricsLine, float] | None = None  # loss, its line, the median before it
    finite = [line for line in lines if math.isfinite(line.numbers.get("loss", math.nan))]
    for line in finite:
        loss = line.numbers["loss"]
        middle, noise = _level(losses.window) if _may_be(loss, losses) else (0.0, math.inf)
        if loss > middle + K * noise:
            losses = losses._replace(over=middle + K / 2 * noise)
        if losses.over is not None and loss > losses.over:
            highest = max(highest or (-math.inf, line, 0.0), (loss, line, median(losses.window)), key=lambda x: x[0])
        else:
            losses = Losses((*losses.window, loss)[-WINDOW:])
    if not finite:
        return None, losses
    span = (finite[0].at, finite[-1].at)
    if highest is None:
        return Verdict(Kind.SPIKE, "loss", Level.GOOD, *span), losses
    return _spiked(*highest, losses.over is not None, span[1]), losses


def _may_be(loss: float, losses: Losses) -> bool:
    """Tell whether it is worth the medians: mostly it isn't."""
    return losses.over is None and len(losses.window) >= FEWEST and loss > max(losses.window)


def _level(window: Sequence[float]) -> tuple[float, float]:
    middle = median(window)
    deviation = median(abs(loss - middle) for loss in window)
    return middle, max(TO_SIGMA * deviation, LEAST_NOISE * abs(middle), 1e-12)


def _spiked(loss: float, line: MetricsLine, middle: float, lasts: bool, last: float) -> Verdict:
    text = f"The loss rose to {loss:.4g} at step {line.step}; the median before was {middle:.4g}"
    text += ", and it has not come back down yet" if lasts else ", and it came back down"
    return Verdict(Kind.SPIKE, "loss", Level.BAD, line.at, last, f"{loss:.4g}", f"{text}.")


def progress(now: float, stepped: float, step: int, between: Sequence[float], hang_seconds: float) -> Verdict:
    """Return whether steps come. `stepped`: when the last line came here; `between`: seconds between the last lines.

    Lines come each log_every steps, so it is their times that count: a run with few of them is given as much longer.
    """
    limit = max(hang_seconds, STEPS * median(between) if between else 0.0)
    idle = now - stepped
    if idle <= limit:
        return Verdict(Kind.PROGRESS, "step", Level.GOOD, now, now)
    what = f"step {step} was the last" if step else "there is none yet"
    text = f"No new step for {minutes(idle)}, {what}; more than {minutes(limit)} is unusual here."
    return Verdict(Kind.PROGRESS, "step", Level.BAD, stepped, now, minutes(idle), text)


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
