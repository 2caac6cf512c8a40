"""Write down what each node said of what is left, so that pages show it."""

from __future__ import annotations

import time

from django.db import transaction

from webapp.runs import journal, lifecycle, proof
from webapp.runs.models import Attempt, Placement

from ..group import Answer
from .settle import Settled


def keep(attempt: Attempt, settled: Settled) -> None:
    """Keep each node's newest answer; a node whose answer reads otherwise than before is one line in the journal."""
    for rank, status in settled.status.items():
        if status.get("state") != "running" or status.get("processes"):
            _keep(attempt, rank, status, proven=rank in settled.proven)


def _keep(attempt: Attempt, rank: int, status: Answer, *, proven: bool) -> None:
    asked = attempt.stop_now_at or attempt.stop_requested_at
    made = proof.made(status, time.time(), asked.timestamp() if asked else None)
    with transaction.atomic():
        lifecycle.lock(attempt.run_id)
        placement = Placement.objects.select_related("node").get(attempt=attempt, rank=rank)
        if placement.proven_gone_at or _same(placement.proof, made):
            return
        Placement.objects.filter(pk=placement.pk).update(proof=made)
        data = {"node": placement.node.name, "rank": rank, "proven": proven, "text": proof.sentence(made)}
        journal.note(attempt, proof.KIND, data, source="service:proof")


def _same(old: dict[str, object] | None, new: dict[str, object]) -> bool:
    """Tell whether nothing but the time is new: a look a second must not fill the journal."""
    times = ("at", "seconds")
    return old is not None and {k: v for k, v in old.items() if k not in times} == {
        k: v for k, v in new.items() if k not in times
    }
