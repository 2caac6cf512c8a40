"""Do something on every rank that may be refused on one: then it is refused on all, and none waits for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..ranks import Ranks
from ..spec.lint import Problem, Refused
from .stored import Unfit

T = TypeVar("T")


def together(ranks: Ranks, act: Callable[[], T]) -> T:
    """Return this rank's result. Raises, on all ranks alike, the first rank's Refused, or else its Unfit.

    A file that can't be read counts as refused. All ranks must call.
    """
    result, problems, unfit = None, [], ""
    try:
        result = act()
    except Refused as error:
        problems = error.problems
    except Unfit as error:
        unfit = str(error)
    except OSError as error:
        problems = [Problem("model", f"rank {ranks.rank}: {error}", "See that every node can read the model.")]
    told: list[tuple[list[Problem], str]] = ranks.gather((problems, unfit))
    if first := next((found for found, _ in told if found), None):
        raise Refused(first)
    if why := next((text for _, text in told if text), ""):
        raise Unfit(why)
    return result  # type: ignore[return-value]
