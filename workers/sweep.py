"""Look after everything that is due, and after leases whose holders have gone silent."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from webapp import dispatch
from webapp.fleet.models import Provision
from webapp.fleet.models.provision import ENDED
from webapp.preflights.models import Preflight
from webapp.runs import jobkinds, retention
from webapp.runs.models import Attempt, Checkpoint
from webapp.runs.states import ON_NODES, RunState

from . import lease, leftovers
from .end import finish
from .notices import sending, watching

AGAIN = timedelta(seconds=15)  # a look that was sent and got lost is sent again after this
CLEAR_EVERY = timedelta(seconds=60)


def sweep() -> None:
    now = timezone.now()
    due = lease.free() & (Q(due_at__lte=now) | Q(lease_until__lt=now))
    attempts = Attempt.objects.filter(due, ended_at=None, run__state__in=[RunState.QUEUED, *ON_NODES])
    for attempt in attempts:
        if _put_off(attempt, AGAIN):
            dispatch.send(dispatch.ADVANCE_RUN, attempt.run_id)
    for kind in jobkinds.every():
        for job in kind.model._default_manager.filter(due).exclude(state__in=kind.model.STATES.ended):
            if _put_off(job, AGAIN):
                dispatch.send(dispatch.ADVANCE_JOB, job.KIND, job.pk)
    for checkpoint in Checkpoint.objects.due().filter(due):
        if _put_off(checkpoint, AGAIN):
            dispatch.send(dispatch.ADVANCE_CHECKPOINT, checkpoint.pk)
    for preflight in Preflight.objects.filter(due, ended_at=None):
        if _put_off(preflight, AGAIN):
            dispatch.send(dispatch.PREFLIGHT, preflight.pk)
    for found in Provision.objects.filter(due).exclude(state__in=ENDED):
        if _put_off(found, AGAIN):
            dispatch.send(dispatch.ADVANCE_PROVISION, found.pk)
    leftovers.sweep(now)
    watching.sweep(now)
    sending.sweep(now)
    retention.drop(now)
    for attempt in finish.to_clear(now).filter(due):
        if _put_off(attempt, CLEAR_EVERY):
            dispatch.send(dispatch.CLEAR_ATTEMPT, attempt.pk)


def _put_off(row: lease.Row, by: timedelta) -> bool:
    """Return True for the one sweeper that may send the look now."""
    rows = type(row)._default_manager.filter(pk=row.pk, due_at=row.due_at)
    return rows.update(due_at=timezone.now() + by) == 1
