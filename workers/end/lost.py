"""A node that is silent and can't be reached for too long counts as lost; then the others are ended.

Before that it is only unreachable: training may well go on there. As long as steps are told of by another node it
does go on, since no step is done without all ranks. Where no node of the run can be reached it may be our own
network that is down, and much more patience is in place: a healthy run must not end for that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from training.spec.faults import Reason
from webapp.runs.models import Attempt, Placement

from . import finish
from .heard import heard, stepped

ALL_AWAY = 6  # times the limit, where none of the run's nodes can be reached


def give_up(attempt: Attempt) -> None:
    """Write the end of the nodes that are lost. They are cleared by themselves should they come back."""
    left = list(attempt.placements.filter(exit__isnull=True).exclude(started_at=None))
    away = [placement for placement in left if placement.unreachable_since]
    if not away:
        return
    seconds = attempt.run.parsed_recipe().limits.lost_seconds * (ALL_AWAY if len(away) == len(left) else 1)
    step, now = stepped(attempt), timezone.now()
    for placement in away:
        since = last_sign(attempt, placement)
        if now > max(filter(None, (since, step))) + timedelta(seconds=seconds):
            _write(placement, since, seconds)


def last_sign(attempt: Attempt, placement: Placement) -> datetime:
    """Return when the node was last heard of, or when it was first found away."""
    assert placement.unreachable_since is not None
    return heard(attempt, f"node@{placement.rank}") or placement.unreachable_since


def _write(placement: Placement, since: datetime, seconds: int) -> None:
    text = (
        f"the node has been silent since {since:%Y-%m-%d %H:%M:%S} UTC and can't be reached; after {seconds} seconds"
        " without any step it counts as lost"
    )
    found = finish.made_up(Reason.NODE_LOST, text, since.timestamp())
    Placement.objects.filter(pk=placement.pk, exit__isnull=True).update(exit=found)
