"""Who waits for the nodes of a cluster, and in which order."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from .models import Attempt, Run
from .states import RunState


def ahead_of(run: Run) -> QuerySet[Run]:
    """Return the queued runs that get the cluster's nodes before `run`: those made before it.

    One that waits before its restart lets the others by, or its nodes would idle that long.
    """
    resting = Attempt.objects.filter(run=OuterRef("pk"), ended_at=None, not_before__gt=timezone.now())
    return Run.objects.filter(
        ~Exists(resting), cluster=run.cluster_id, state=RunState.QUEUED, pk__lt=run.pk
    )  # fmt: skip
