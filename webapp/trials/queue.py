"""Who answers next on a node: one trial at a time, in the order in which they were asked."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from webapp.dispatch import advance_job
from webapp.fleet.models import Node

from .models import Trial
from .models.trial import TrialState

ACTIVE = (TrialState.PREPARING, TrialState.RUNNING)


def ahead_of(trial: Trial) -> QuerySet[Trial]:
    """Return the trials that a queued one waits for."""
    before = Q(state__in=ACTIVE) | Q(state=TrialState.QUEUED, pk__lt=trial.pk)
    return Trial.objects.filter(before, node=trial.node_id).exclude(pk=trial.pk).order_by("pk")


def call_next(ended: Trial) -> None:
    """Have whoever waits on the same node look."""
    waiting = Trial.objects.filter(node=ended.node_id, state=TrialState.QUEUED).order_by("pk").first()
    if waiting:
        advance_job(waiting.KIND, waiting.pk)


def give_way(nodes: Iterable[Node]) -> None:
    """Have trials on nodes that a run has just taken look, and end, before its ranks have started."""
    for trial in Trial.objects.filter(node__in=list(nodes), state__in=ACTIVE, beside=False):
        advance_job(trial.KIND, trial.pk)
