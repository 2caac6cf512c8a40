"""Make a model folder of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.db import transaction

from training.spec.job import export_settings
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_job

from .. import lifecycle
from ..models import Checkpoint, Export, Run
from .choice import check_checkpoint, newest_checkpoint


@transaction.atomic
def export(
    run: Run, user: User | None, checkpoint: Checkpoint | None = None, dtype: str = "", adapter: str = ""
) -> Export:
    """Queue an export of `checkpoint`, or of the newest complete one, in `dtype` or the recipe's.

    `adapter`: of an adapter's run, a model of its own (`merged`) or the `adapter` alone; empty: the recipe's choice.
    """
    checkpoint = checkpoint or newest_checkpoint(run)
    if checkpoint is None:
        raise Refused([Problem("checkpoint", "the run has no complete checkpoint yet", "Wait for the first save.")])
    check_checkpoint(run, checkpoint)
    usual = export_settings(run.parsed_recipe())
    dtype, adapter = dtype or usual["dtype"], adapter or usual["adapter"]
    if problems := [*_dtype_problems(dtype), *_adapter_problems(run, adapter)]:
        raise Refused(problems)
    made = Export.objects.create(checkpoint=checkpoint, dtype=dtype, adapter=adapter, requested_by=user)
    lifecycle.tell_of_job(made, "")
    advance_job(made.KIND, made.pk)
    return made


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
