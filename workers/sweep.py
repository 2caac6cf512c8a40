"""Look after everything that is due, and after leases whose holders have gone silent."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from webapp import dispatch
from webapp.runs.models import Attempt, Export
from webapp.runs.states import EXPORT_ENDED, ON_NODES, RunState

from . import lease
from .end import finish

AGAIN = timedelta(seconds=15)  # a look that was sent and got lost is sent again after this
CLEAR_EVERY = timedelta(seconds=60)


def sweep() -> None:
    now = timezone.now()
    due = lease.free() & (Q(due_at__lte=now) | Q(lease_until__lt=now))
    attempts = Attempt.objects.filter(due, ended_at=None, run__state__in=[RunState.QUEUED, *ON_NODES])
    for attempt in attempts:
        if _put_off(attempt, AGAIN):
            dispatch.send(dispatch.ADVANCE_RUN, attempt.run_id)
    for export in Export.objects.filter(due).exclude(state__in=EXPORT_ENDED):
        if _put_off(export, AGAIN):
            dispatch.send(dispatch.ADVANCE_EXPORT, export.pk)
    for attempt in finish.to_clear(now).filter(due):
        if _put_off(attempt, CLEAR_EVERY):
            dispatch.send(dispatch.ADVANCE_RUN, attempt.run_id)


def _put_off(row: Attempt | Export, by: timedelta) -> bool:
    """Return True for the one sweeper that may send the look now."""
    rows = type(row)._default_manager.filter(pk=row.pk, due_at=row.due_at)
    return rows.update(due_at=timezone.now() + by) == 1
