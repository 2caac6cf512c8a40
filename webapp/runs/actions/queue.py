"""What a person can do to a queue: pause it, give a run another priority, move one that waits."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.fleet.models import Cluster

from .. import journal, lifecycle
from ..models import Pause, Run
from ..queue import wake
from ..queue.rank import priority_problems
from ..queue.wish import Wish
from ..states import RESUMABLE, RunState
from .order import Order, check, planned_steps

KIND = "queue"  # in a run's journal
LONGEST_WHY = 200
MOVABLE = frozenset({RunState.DRAFT, RunState.QUEUED, *RESUMABLE})


def pause(cluster: Cluster | None, by: User, why: str) -> Pause:
    """Have no run started in a cluster, or in none of them where `cluster` is None. What runs goes on."""
    why = why.strip()
    if not why or len(why) > LONGEST_WHY or any(ord(c) < 32 for c in why):
        fix = f"Say in at most {LONGEST_WHY} characters, on one line, why: those who wait will read it."
        raise Refused([Problem("why", "it is empty" if not why else "it doesn't fit", fix)])
    _staff(by, "pause a queue")
    try:
        with transaction.atomic():
            return Pause.objects.create(cluster=cluster, by=by.get_username(), why=why)
    except IntegrityError:
        found = Pause.objects.filter(cluster=cluster, ended_at=None).first()
        raise Refused([Problem("cluster", str(found or "it is paused already"), "Nothing is left to do.")]) from None


@transaction.atomic
def unpause(cluster: Cluster | None, by: User) -> None:
    """Let runs start again; a cluster's queue goes on only where all of them do. Done twice, it is the same."""
    _staff(by, "let a queue go on")
    standing = Pause.objects.filter(cluster=cluster, ended_at=None)
    if standing.update(ended_at=timezone.now(), ended_by=by.get_username()):
        _look(cluster)


@transaction.atomic
def prioritise(run: Run, value: int, by: User) -> None:
    """Give a run another place in its queue: 100 comes first, -100 last. Staff raises, its owner may lower."""
    lifecycle.lock(run.pk)
    run.refresh_from_db()
    if problems := priority_problems(value, by, run.priority, run.owner):
        raise Refused(problems)
    if value == run.priority:
        return
    _tell(run, f"priority {run.priority} is now {value}", by)
    run.priority = value
    run.save(update_fields=["priority"])
    _look(run.cluster)


@transaction.atomic
def move(run: Run, cluster: Cluster, wish: Wish, by: User) -> None:
    """Have a run that is on no node train elsewhere: on another cluster, on other nodes, on more or fewer GPUs.

    The order is checked as a new one is. One that runs is stopped first, moved, and resumed.
    """
    lifecycle.lock(run.pk)
    run.refresh_from_db()
    if (cluster, wish) == (run.cluster, run.wished()):
        return
    if run.state not in MOVABLE:
        raise Refused([Problem("state", f"the run is {run.state}", _first(run))])
    recipe = check(Order(run.name, run.preset, run.recipe, run.model, run.dataset, cluster, wish))
    left, run.cluster, run.wish = run.cluster, cluster, wish.as_json()
    if not run.step:  # what has begun knows its own number
        run.total_steps = planned_steps(recipe, run.dataset, cluster, wish)
    run.save(update_fields=["cluster", "wish", "total_steps"])
    _tell(run, f"moved from {left.name} to {cluster.name}" if left != cluster else "moved to other nodes", by)
    _look(left)
    _look(cluster)


def _first(run: Run) -> str:
    """Return what to do with a run that can't be moved as it is."""
    if run.state == RunState.STOPPING:
        return "Wait until it has stopped, then move it."
    return "Stop it, move it, then resume it: it goes on from its newest checkpoint." if run.can_stop else "Clone it."


def _tell(run: Run, text: str, by: User) -> None:
    if attempt := run.attempt:  # of a draft nothing is told
        data = {"text": text, "actor": by.get_username()}
        journal.note(attempt, KIND, data, source=f"service:{KIND}")


def _look(cluster: Cluster | None) -> None:
    """Have the runs that wait look again; None: in every cluster."""
    for one in [cluster] if cluster else Cluster.objects.all():
        wake.call(one.pk)


def _staff(by: User, what: str) -> None:
    if not by.is_staff:
        raise Refused([Problem("user", f"only staff may {what}", "Ask somebody who is staff.")])
