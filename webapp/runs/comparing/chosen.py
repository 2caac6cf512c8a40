"""Which runs are compared: as many as can be told apart on one chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from training.spec.lint import Problem, Refused
from webapp.keys import key_of

from ..models import Run

MOST = 20


@dataclass(frozen=True)
class Chosen:
    """`runs` in the order in which they were asked for; `missing`: what names none."""

    runs: list[Run]
    missing: list[str] = field(default_factory=list)


def chosen(numbers: Sequence[str]) -> Chosen:
    """Return the runs of these numbers, each once; raise Refused where there are too many."""
    wanted = list(dict.fromkeys(numbers))
    if len(wanted) > MOST:
        why = f"{len(wanted)} are asked for, and at most {MOST} can be told apart on one chart"
        raise Refused([Problem("run", why, "Choose fewer in the list of runs.")])
    keys = {text: key for text in wanted if (key := key_of(text))}
    rows = Run.objects.select_related("model", "dataset__dataset", "cluster", "owner")
    found = rows.in_bulk(keys.values())
    runs = [found[keys[text]] for text in wanted if keys.get(text) in found]
    return Chosen(list(dict.fromkeys(runs)), [text[:20] for text in wanted if keys.get(text) not in found])
