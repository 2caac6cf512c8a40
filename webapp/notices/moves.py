"""What a run's moves mean for its notices; in the transaction that moves it, whose lock on the run comes first."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save

from webapp.runs.models import Transition
from webapp.runs.states import ENDED, RunState

from . import telling
from .models import Notice


def moved(sender: type[Transition], instance: Transition, created: bool, raw: bool = False, **_: Any) -> None:
    """What was open is over with its run, whatever became of it; an end may be taken back at once by a restart."""
    if not created or raw:
        return
    if instance.new in ENDED:
        Notice.objects.open().filter(run=instance.run_id).update(ended_at=instance.at, with_run=True)
        telling.of_end(instance)
    elif instance.old == RunState.FAILED and instance.attempt and instance.attempt.restart:
        telling.of_restart(instance)


def register() -> None:
    post_save.connect(moved, sender=Transition, dispatch_uid="notices.moved")
