"""PURE: which checkpoints stay and why. Training deletes by it, and the site shows by it what will be there.

The rule is a recipe's section `checkpoints`; a checkpoint stays for any one reason. The newest complete one always
stays, and so does what may still be being written. All of it is per attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .sections.checkpoints import Checkpoints

NEWEST = "last complete one"
WRITING = "newer than the last complete one, so it may be being written"
NONE_COMPLETE = "none is complete yet"
TORN = "torn, and older than the last complete one"


@dataclass(frozen=True)
class Seen:
    """One checkpoint on disk. `metric`: of the rule's kind, as last measured at step `measured_at`; None: never."""

    step: int
    complete: bool = True
    metric: float | None = None
    measured_at: int | None = None
    pinned: bool = False
    held: tuple[int, ...] = ()

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts the best first; of equals the one nearest to its evaluation, then the oldest, which so stays put."""
        assert self.metric is not None
        return self.metric, self.step - (self.step if self.measured_at is None else self.measured_at), self.step

    @property
    def comparable(self) -> bool:
        return self.complete and self.metric is not None and math.isfinite(self.metric)


@dataclass(frozen=True)
class Verdict:
    """What becomes of a checkpoint, with every reason for it."""

    step: int
    kept: bool
    reasons: tuple[str, ...]

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)


def judged(found: Iterable[Seen], rule: Checkpoints) -> list[Verdict]:
    """Return the verdict on each checkpoint, oldest first. The order of `found` doesn't matter; steps are unique."""
    every = sorted(found, key=lambda seen: seen.step)
    complete = [seen.step for seen in every if seen.complete]
    newest = frozenset(complete[-rule.keep :])
    best = frozenset(best_of(every, rule))
    last = complete[-1] if complete else None
    return [_judged(seen, rule, last, newest, best) for seen in every]


def best_of(found: Iterable[Seen], rule: Checkpoints) -> list[int]:
    """Return the steps of the best ones, the best first. A metric that is no finite number is never best."""
    ranked = sorted((seen for seen in found if seen.comparable), key=lambda seen: seen.rank)
    return [seen.step for seen in ranked[: rule.keep_best]]


def _judged(seen: Seen, rule: Checkpoints, last: int | None, newest: frozenset[int], best: frozenset[int]) -> Verdict:
    reasons = _marks(seen)
    if last is None:
        reasons.append(NONE_COMPLETE)
    elif not seen.complete:
        reasons += [WRITING] if seen.step > last else []
    else:
        reasons += [NEWEST] if seen.step == last else []
        reasons += [f"newest {rule.keep}"] if seen.step in newest and (rule.keep > 1 or seen.step != last) else []
        reasons += [f"best {rule.keep_best} by {_measured(seen, rule)}"] if seen.step in best else []
        reasons += [f"every {rule.keep_every}"] if rule.keep_every and seen.step % rule.keep_every == 0 else []
    return Verdict(seen.step, bool(reasons), tuple(reasons or _against(seen, rule)))


def _marks(seen: Seen) -> list[str]:
    pinned = ["pinned"] if seen.pinned else []
    return pinned + [f"held by export {number}" for number in seen.held]


def _measured(seen: Seen, rule: Checkpoints) -> str:
    """Return the metric and its value, with the step where it was measured at another one."""
    at = "" if seen.measured_at in (None, seen.step) else f" at step {seen.measured_at}"
    return f"{rule.best_metric} ({seen.metric:.4g}{at})"


def _against(seen: Seen, rule: Checkpoints) -> list[str]:
    """Return why it goes: by none of the rule's reasons it stays."""
    if not seen.complete:
        return [TORN]
    found = [f"older than the newest {rule.keep}"]
    if rule.keep_best and seen.comparable:
        found.append(f"not among the best {rule.keep_best} by {_measured(seen, rule)}")
    elif rule.keep_best:
        found.append(f"no {rule.best_metric} to go by")
    if rule.keep_every:
        found.append(f"no multiple of {rule.keep_every}")
    return found
