"""Make a model folder of a checkpoint: plan it, start it, take it up again where it was killed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from training.spec.faults import WORTH_RETRYING, Reason
from training.spec.job import export_settings
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_job

from .. import lifecycle
from ..models import Checkpoint, Export, Run
from ..states import ExportState
from .begin import OURSELVES
from .choice import check_checkpoint, newest_checkpoint
from .jobs import let_go

FRESH = timedelta(minutes=5)  # how long a node's word on disk, memory and files is believed
# A node that goes down asks everything on it to stop: what nobody cancelled goes on when it is up again.
PASSING = {*WORTH_RETRYING, Reason.STOPPED_UNSAVED}
RETRIES = 2  # of an export whose job died, without being asked to


@transaction.atomic
def export(
    run: Run,
    user: User | None,
    checkpoint: Checkpoint | None = None,
    dtype: str = "",
    adapter: str = "",
    *,
    once: bool = False,
) -> Export:
    """Queue an export of `checkpoint`, or of the newest complete one, in `dtype` or the recipe's.

    `adapter`: of an adapter's run, a model of its own (`merged`) or the `adapter` alone; empty: the recipe's choice.
    Its node is asked first what it will be: it goes on by itself where it can work, and fails with every reason else.
    Where this person has just looked at the plan of the same, it is that one that starts. `once`: where the same is
    being made for this person, it is that one; a button is soon pressed twice.
    """
    chosen = _chosen(run, checkpoint, dtype, adapter)
    if planned := _plans(user, chosen).first():
        return start(planned, user.username if user else OURSELVES)
    if once and (same := _under_way(user, chosen).first()):
        return same
    return _queue(user, chosen, waits=False)


@transaction.atomic
def plan(
    run: Run, user: User | None, checkpoint: Checkpoint | None = None, dtype: str = "", adapter: str = ""
) -> Export:
    """Ask what an export would be, and start nothing: it waits for `start`, and is let go where nobody says so."""
    chosen = _chosen(run, checkpoint, dtype, adapter)
    if planned := _plans(user, chosen).first():
        return planned
    for other in Export.objects.filter(
        waits=True, requested_by=user, checkpoint__attempt__run=run, cancel_asked_at=None
    ):
        let_go(other)  # he asks about another one now
    return _queue(user, chosen, waits=True)


def _chosen(run: Run, checkpoint: Checkpoint | None, dtype: str, adapter: str) -> dict[str, object]:
    """Return what is exported how; raise Refused with every problem that shows here."""
    checkpoint = checkpoint or newest_checkpoint(run)
    if checkpoint is None:
        raise Refused([Problem("checkpoint", "the run has no complete checkpoint yet", "Wait for the first save.")])
    check_checkpoint(run, checkpoint)
    usual = export_settings(run.parsed_recipe())
    dtype, adapter = dtype or usual["dtype"], adapter or usual["adapter"]
    if problems := [*_dtype_problems(dtype), *_adapter_problems(run, adapter)]:
        raise Refused(problems)
    return {"checkpoint": checkpoint, "dtype": dtype, "adapter": adapter}


def _plans(user: User | None, chosen: dict[str, object]) -> QuerySet[Export]:
    """Return this person's waiting plans of the same export that are still believed."""
    rows = Export.objects.filter(waits=True, requested_by=user, cancel_asked_at=None, **chosen)
    return rows.filter(created_at__gt=timezone.now() - FRESH).exclude(state__in=Export.STATES.ended)


def _under_way(user: User | None, chosen: dict[str, object]) -> QuerySet[Export]:
    rows = Export.objects.filter(waits=False, requested_by=user, cancel_asked_at=None, **chosen)
    return rows.exclude(state__in=Export.STATES.ended).order_by("pk")


def _queue(user: User | None, chosen: dict[str, object], *, waits: bool) -> Export:
    made = Export.objects.create(requested_by=user, waits=waits, **chosen)
    lifecycle.tell_of_job(made, "")
    advance_job(made.KIND, made.pk)
    return made


@transaction.atomic
def start(export: Export, actor: str) -> Export:
    """Start what was planned; refused where the plan says that it can't work. Asked twice, it starts once.

    An old plan is made again first.
    """
    export = _locked(export)
    if not export.waits:
        return export
    if export.has_ended or export.cancel_asked_at:
        raise Refused([Problem("state", f"the plan was let go: it is {export.state}", "Plan the export again.")])
    check_checkpoint(export.run, export.checkpoint)  # a plan holds nothing: it may have been deleted since
    foretold = export.foretold
    fresh = export.planned_at is not None and export.planned_at > timezone.now() - FRESH
    if export.state == ExportState.PLANNED and foretold and fresh and foretold.problems:
        raise Refused([Problem(found.field, found.why, found.fix) for found in foretold.problems])
    export.waits = False
    export.save(update_fields=["waits"])
    if export.state == ExportState.PLANNED:
        lifecycle.move_job(export, ExportState.GATHERING if foretold and fresh else ExportState.QUEUED)
    lifecycle.tell_of_job(export, export.state, actor=actor, asked="start")
    advance_job(export.KIND, export.pk)
    return export


@transaction.atomic
def go_on(export: Export, actor: str) -> Export:
    """Queue a failed export again: it goes on from what its job left on the node; without a job it is planned anew."""
    export = _locked(export)
    if export.state != ExportState.FAILED:
        raise Refused([Problem("state", f"the export is {export.state}", "Only one that failed can be resumed.")])
    check_checkpoint(export.run, export.checkpoint)
    return _again(export, actor, retried=0)


@transaction.atomic
def retry(export: Export) -> Export | None:
    """Queue a failed export again by itself; None where its reason would end it the same way, or often enough."""
    export = _locked(export)
    if export.state != ExportState.FAILED or not is_retried(export, export.reason):
        return None
    return _again(export, OURSELVES, retried=export.retried + 1)


def is_retried(export: Export, reason: str) -> bool:
    """Tell whether an export that fails for `reason` is queued again by itself."""
    worth = reason in PASSING and export.checkpoint.usable
    return worth and export.retried < RETRIES and not export.cancel_asked_at


def _again(export: Export, actor: str, *, retried: int) -> Export:
    if export.was_begun:  # one of which nothing was ever put on its node is planned once more
        export.start += 1
    export.retried, export.queued_at = retried, timezone.now()
    export.save(update_fields=["start", "retried", "queued_at"])
    lifecycle.move_job(export, ExportState.QUEUED)
    lifecycle.tell_of_job(export, export.state, actor=actor, asked="resume", start=export.start)
    advance_job(export.KIND, export.pk)
    return export


def _locked(export: Export) -> Export:
    lifecycle.lock(export.run.pk)
    return Export.objects.select_for_update().get(pk=export.pk)


def _dtype_problems(dtype: str) -> Iterator[Problem]:
    known = [str(choice) for choice, _ in Export._meta.get_field("dtype").choices or []]
    if dtype not in known:
        yield Problem("dtype", f"{dtype!r} is not a number format of ours", f"Choose {', '.join(known)}.")


def _adapter_problems(run: Run, adapter: str) -> Iterator[Problem]:
    adapts = run.parsed_recipe().method.adapts
    known = adapter_choices(run)
    if adapts and adapter not in known:
        yield Problem("adapter", f"{adapter!r} is no way to export an adapter", f"Choose {', '.join(known)}.")
    if not adapts and adapter != "none":
        yield Problem("adapter", "this run trained the whole model, no adapter", "Leave adapter out.")


def adapter_choices(run: Run) -> dict[str, str]:
    """Return the ways in which an adapter's run can be exported, with their labels; none for a whole model's."""
    choices = {str(choice): str(label) for choice, label in Export._meta.get_field("adapter").choices or []}
    del choices["none"]
    return choices if run.parsed_recipe().method.adapts else {}
