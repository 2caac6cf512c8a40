"""Notices: a watch on each run that is at work, shown on its page and in the list, and sent to whoever asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webapp.runs.models import Run

    from .models import Notice


def open_of(runs: Iterable[Run]) -> dict[int, list[Notice]]:
    """Return the open notices of these runs by run, oldest first; runs without any are left out. One query."""
    from .models import Notice  # this package is loaded before there are models

    found: dict[int, list[Notice]] = {}
    for notice in Notice.objects.open().filter(run__in=list(runs)).order_by("began_at", "pk"):
        found.setdefault(notice.run_id, []).append(notice)
    return found
