"""PURE: which checkpoints of a run's earlier attempts nobody needs any more, because a later one went on from there.

Training deletes within its own attempt alone; what is found here is offered to a person, and deleted by no rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .retention import Seen, Verdict, best_of
from .sections.checkpoints import Checkpoints

NOT_GONE_ON_FROM = "no later attempt with a complete checkpoint of its own went on from this attempt"


@dataclass(frozen=True)
class Past:
    """One attempt. `resumed`: (attempt, step) that it went on from; None: it began afresh."""

    number: int
    resumed: tuple[int, int] | None
    checkpoints: tuple[Seen, ...]


@dataclass(frozen=True)
class Old:
    """The verdict on a checkpoint of an earlier attempt; with `kept` False it may go."""

    attempt: int
    verdict: Verdict


def superseded(attempts: Iterable[Past], rule: Checkpoints) -> list[Old]:
    """Return the verdict on each checkpoint of each attempt before the newest that has a complete one, oldest first.

    Its line is what it went on from, back to the start: up to the step where each attempt was left, the run's own
    past. On it, multiples of `keep_every` stay, and the best of the whole line; beside it, what was trained and left
    for another try goes. What is pinned or held stays, and so does an attempt that is on no line.
    """
    by_number = {past.number: past for past in sorted(attempts, key=lambda past: past.number)}
    whole = [past for past in by_number.values() if any(seen.complete for seen in past.checkpoints)]
    if not whole:
        return []
    current = whole[-1]
    left = _line(current, by_number)
    best = _best(current, left, by_number, rule)
    needed = {past.resumed: past.number for past in by_number.values() if past.resumed and past.number > current.number}
    return [
        Old(past.number, _needed(_judged(seen, past.number, left, best, rule), needed.get((past.number, seen.step))))
        for past in by_number.values()
        if past.number < current.number
        for seen in sorted(past.checkpoints, key=lambda seen: seen.step)
    ]


def _line(current: Past, attempts: dict[int, Past]) -> dict[int, int]:
    """Return {attempt: step at which the line left it} of all that `current` goes back to."""
    left: dict[int, int] = {}
    at = current.resumed
    while at and at[0] not in left and at[0] in attempts:
        left[at[0]] = at[1]
        at = attempts[at[0]].resumed
    return left


def _best(
    current: Past, left: dict[int, int], attempts: dict[int, Past], rule: Checkpoints
) -> frozenset[tuple[int, int]]:
    """Return (attempt, step) of the best on the line. Where two attempts saved one step, the later one's counts."""
    found: dict[int, tuple[int, Seen]] = {}
    for number, last in sorted(left.items()):
        found |= {seen.step: (number, seen) for seen in attempts[number].checkpoints if seen.step <= last}
    found |= {seen.step: (current.number, seen) for seen in current.checkpoints}
    steps = best_of([seen for _, seen in found.values()], rule)
    return frozenset((found[step][0], step) for step in steps)


def _judged(
    seen: Seen, number: int, left: dict[int, int], best: frozenset[tuple[int, int]], rule: Checkpoints
) -> Verdict:
    reasons = (["pinned"] if seen.pinned else []) + [f"held by export {export}" for export in seen.held]
    if number not in left:
        return Verdict(seen.step, kept=True, reasons=(*reasons, NOT_GONE_ON_FROM))
    on_line = seen.complete and seen.step <= left[number]
    if on_line and (number, seen.step) in best:
        reasons.append(f"best {rule.keep_best} by {rule.best_metric} of all attempts")
    if on_line and rule.keep_every and seen.step % rule.keep_every == 0:
        reasons.append(f"every {rule.keep_every}")
    return Verdict(seen.step, bool(reasons), tuple(reasons or [_why(seen, left[number])]))


def _needed(verdict: Verdict, by: int | None) -> Verdict:
    """Return the verdict, knowing the attempt that begins from this checkpoint and has none of its own yet."""
    if by is None:
        return verdict
    reasons = verdict.reasons if verdict.kept else ()
    return Verdict(verdict.step, kept=True, reasons=(*reasons, f"attempt {by} goes on from it"))


def _why(seen: Seen, last: int) -> str:
    if not seen.complete:
        return "torn, and a later attempt went on"
    went = f"a later attempt went on from step {last} and has saved since"
    return went if seen.step <= last else f"{went}, without this one"
