"""Whether a node of an attempt can be reached: a condition of a run that goes on, and told in its journal."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from . import journal
from .models import Attempt, Run

KIND = "reach"  # node, rank, reachable


@transaction.atomic
def show(attempt: Attempt, which: Q, *, reachable: bool) -> None:
    """Show the placements `which` as reachable or not; each that changes is one line, so that open pages hear of it."""
    rows = attempt.placements.filter(which, unreachable_since__isnull=not reachable)
    if not rows.exists():  # nearly always: no lock is taken for that
        return
    Run.objects.select_for_update().get(pk=attempt.run_id)
    for placement in rows.select_related("node"):
        placement.unreachable_since = None if reachable else timezone.now()
        placement.save(update_fields=["unreachable_since"])
        data = {"node": placement.node.name, "rank": placement.rank, "reachable": reachable}
        journal.note(attempt, KIND, data, source="service:reach")
