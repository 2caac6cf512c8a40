"""One act for many runs: each by itself, so that one that is refused takes nothing from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from training.spec.lint import Problem, Refused

from ..models import Run

MOST = 200


@dataclass(frozen=True)
class Outcome:
    """`done`: the runs of which it was taken; `refused`: each other one's number and why."""

    done: list[int] = field(default_factory=list)
    refused: list[tuple[int, list[Problem]]] = field(default_factory=list)


def each(keys: Iterable[int], act: Callable[[Run], object]) -> Outcome:
    """Have `act`, one of the actions on a run, done to each of these; raise Refused where they are none or too many."""
    wanted = list(dict.fromkeys(keys))
    if not wanted or len(wanted) > MOST:
        why = f"there are {len(wanted)}" if wanted else "none is chosen"
        raise Refused([Problem("run", why, f"Choose from 1 to {MOST}.")])
    outcome, runs = Outcome(), Run.objects.in_bulk(wanted)
    for key in wanted:
        try:
            if key not in runs:
                raise Refused([Problem("run", "there is none of that number", "Look at the list again.")])
            act(runs[key])
        except Refused as refused:
            outcome.refused.append((key, list(refused.problems)))
        else:
            outcome.done.append(key)
    return outcome
