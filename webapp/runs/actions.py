"""The only way to change a run: create, launch, stop, resume, clone, export.

Each checks everything first and raises Refused with field, reason and way out; then changes rows in one
transaction and sends a step to the workers on commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from training.spec import presets
from training.spec.faults import WORTH_RETRYING, Reason
from training.spec.job import export_settings
from training.spec.length import total_steps
from training.spec.lint import Problem, Refused, parse_recipe
from training.spec.plan import NodeSlot, Target, check_nodes
from training.spec.recipe import Recipe, merge
from webapp.datasets.models import Version
from webapp.dispatch import advance_export, advance_run
from webapp.fleet.models import Cluster

from . import journal, lifecycle
from .models import Attempt, Checkpoint, Export, ModelSource, Placement, Run
from .states import RunState

MAX_NAME = 200
OURSELVES = "Shardboard"  # the actor of what nobody asked for
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=15), timedelta(minutes=15)  # before a restart


@dataclass(frozen=True)
class Order:
    """What a person or a CI job asks for. `overrides` are nested recipe fields laid over the preset."""

    name: str
    preset: str
    overrides: dict[str, Any]
    model: ModelSource
    dataset: Version
    cluster: Cluster


def resolve(preset: str, overrides: dict[str, Any]) -> Recipe:
    """Return the whole recipe; raise Refused with every problem."""
    return parse_recipe(merge(presets.load(preset).recipe.model_dump(mode="json"), overrides))


def check(order: Order) -> Recipe:
    """Return the recipe of an order that can run; raise Refused otherwise. Touches nothing."""
    problems = _name_problems(order.name)
    recipe = None
    try:
        recipe = resolve(order.preset, order.overrides)
        check_nodes(recipe, slots(order.cluster))
    except Refused as refused:
        problems += refused.problems
    if recipe:
        problems += _data_problems(recipe, order.dataset) + _beside_problems(recipe)
    if problems or recipe is None:
        raise Refused(problems)
    return recipe


def _name_problems(name: str) -> list[Problem]:
    if not name.strip():
        return [Problem("name", "it is empty", "Give the run a name.")]
    if len(name) > MAX_NAME:
        return [Problem("name", f"it has {len(name)} characters", f"At most {MAX_NAME} fit.")]
    if any(ord(c) < 32 for c in name):
        return [Problem("name", "it has control characters", "Leave them out.")]
    return []


def _data_problems(recipe: Recipe, version: Version) -> list[Problem]:
    wanted, have = recipe.data.format, version.format
    if wanted != have:
        why = f"its rows are {have}, the recipe's data.format is {wanted}"
        return [Problem("dataset", why, "Choose another data set or change data.format.")]
    if wanted == "text" and (column := version.text_field) != recipe.data.text_field:
        why = f"the data set has its text in {column!r}, not in {recipe.data.text_field!r}"
        return [Problem("data.text_field", why, f"Set it to {column}.")]
    return []


def _beside_problems(recipe: Recipe) -> list[Problem]:
    """By hand a recipe names its model and its rows; a run of the site has both from what is chosen here."""
    named = {
        "model.name": recipe.model.name,
        "model.revision": recipe.model.revision,
        "data.train": recipe.data.train,
        "data.test": recipe.data.test,
    }
    why, fix = "it is chosen beside the recipe", "Leave it empty, and choose the run's model and data set."
    return [Problem(field, why, fix) for field, value in named.items() if value]


def slots(cluster: Cluster) -> list[NodeSlot]:
    """Return the launch slots of the cluster's nodes that are in service and whose host key is pinned."""
    return [node.slot() for node in cluster.nodes.filter(in_service=True).exclude(host_key="").order_by("name")]


def target_of(run_or_order: Run | Order) -> Target:
    model, version = run_or_order.model, run_or_order.dataset
    return Target(model.location, version.digest, model.revision, has_test=version.test_rows > 0)


def planned_steps(recipe: Recipe, version: Version, cluster: Cluster) -> int:
    """Return the steps of a run, with `epochs` as far as the rows tell; `started` brings the number that counts."""
    return total_steps(recipe, rows=version.rows, ranks=sum(slot.processes for slot in slots(cluster)))


@transaction.atomic
def create(order: Order, owner: User | None, *, cloned_from: Run | None = None) -> Run:
    """Return a new draft."""
    recipe = check(order)
    return Run.objects.create(
        name=order.name.strip(),
        owner=owner,
        preset=order.preset,
        recipe=recipe.model_dump(mode="json"),
        model=order.model,
        dataset=order.dataset,
        cluster=order.cluster,
        cloned_from=cloned_from,
        total_steps=planned_steps(recipe, order.dataset, order.cluster),
    )


@transaction.atomic
def launch(run: Run, actor: str) -> Attempt:
    """Queue a draft; return its first attempt."""
    if run.state != RunState.DRAFT:
        raise Refused([Problem("state", f"the run is {run.state}, not a draft", "Clone it to run it again.")])
    return _queue(run, actor, "launched")


@transaction.atomic
def resume(run: Run, actor: str, checkpoint: Checkpoint | None = None) -> Attempt:
    """Queue a stopped or failed run again, from `checkpoint` or its newest complete one."""
    if not run.can_resume:
        raise Refused([Problem("state", f"the run is {run.state}", "Only a stopped or failed run can be resumed.")])
    skipped = "" if checkpoint else torn_ones(run)
    checkpoint = checkpoint or newest_checkpoint(run)
    if checkpoint is None:
        raise Refused([Problem("checkpoint", "the run has no complete checkpoint", "Clone the run to start afresh.")])
    _check_resumable(run, checkpoint)
    return _queue(run, actor, f"resumed from step {checkpoint.step}{skipped}", checkpoint)


@transaction.atomic
def restart(run: Run, failed: Attempt) -> Attempt | None:
    """Queue a failed run again by itself, from its newest complete checkpoint or afresh; None where it may not.

    `failed` is the attempt that has just ended; called again for the same one, nothing happens. The run's recipe
    says how often in a row, training.spec.faults after which reasons. Raises Refused where nodes are missing.
    """
    run = Run.objects.select_for_update().get(pk=run.pk)
    limit, number = run.parsed_recipe().limits.restarts, failed.restart + 1
    if run.state != RunState.FAILED or run.attempt != failed or number > limit or failed.stop_requested_at:
        return None
    if run.reason not in WORTH_RETRYING:
        return None
    checkpoint = newest_checkpoint(run)
    if checkpoint:
        _check_resumable(run, checkpoint)
    start = f"from step {checkpoint.step}" if checkpoint else "afresh, there is no complete checkpoint"
    delay = restart_delay(number)
    cause = f"restarted {number} of {limit} {start}{torn_ones(run)}: {WORTH_RETRYING[Reason(run.reason)]}"
    return _queue(run, OURSELVES, cause, checkpoint, restart=number, not_before=timezone.now() + delay)


def restart_delay(number: int) -> timedelta:
    """Return how long restart `number` waits: a node that starts anew takes minutes, and tries are few."""
    return min(FIRST_DELAY * 4 ** min(number - 1, 10), LONGEST_DELAY)


def torn_ones(run: Run) -> str:
    """Return what a resume from the newest complete checkpoint passes over, as words behind its step; or nothing."""
    newest = newest_checkpoint(run)
    rows = Checkpoint.objects.filter(attempt__run=run, completed_at=None, deleted_at=None)
    if newest:
        later = Q(attempt=newest.attempt_id, step__gt=newest.step)
        rows = rows.filter(later | Q(attempt__number__gt=newest.attempt.number))
    names = [
        f"step {row.step} of attempt {row.attempt.number} (on {row.parts.count()} of {row.nodes} nodes)"
        for row in rows.select_related("attempt").order_by("attempt__number", "step")
    ]
    return f"; passed over as incomplete: {', '.join(names)}" if names else ""


def _check_resumable(run: Run, checkpoint: Checkpoint) -> None:
    _check_checkpoint(run, checkpoint)
    if checkpoint.step >= run.total_steps:
        raise Refused(
            [Problem("checkpoint", "it is the run's last step", "There is nothing left to train; export it.")]
        )
    _check_same_nodes(run, checkpoint)


def _check_checkpoint(run: Run, checkpoint: Checkpoint) -> None:
    if checkpoint.attempt.run_id != run.pk:
        raise Refused([Problem("checkpoint", "it belongs to another run", "Choose one of this run's checkpoints.")])
    if not checkpoint.usable:
        what = "was deleted" if checkpoint.deleted_at else "is not complete"
        raise Refused([Problem("checkpoint", f"step {checkpoint.step} {what}", "Choose a complete one.")])


def _check_same_nodes(run: Run, checkpoint: Checkpoint) -> None:
    """Checkpoints lie on the nodes that wrote them."""
    written = {p.node_id for p in checkpoint.attempt.placements.all()}
    ready = set(run.cluster.nodes.filter(in_service=True).exclude(host_key="").values_list("pk", flat=True))
    if not written <= ready:
        raise Refused(
            [Problem("cluster", "a node that holds the checkpoint is out of service", "Return it to service.")]
        )


def newest_checkpoint(run: Run) -> Checkpoint | None:
    """Return the newest attempt's newest complete checkpoint, else that of the attempt before, and so on."""
    usable = Checkpoint.objects.filter(attempt__run=run, deleted_at=None).exclude(completed_at=None)
    return usable.order_by("-attempt__number", "-step").first()


def _queue(run: Run, actor: str, cause: str, checkpoint: Checkpoint | None = None, **how: Any) -> Attempt:
    Run.objects.select_for_update().get(pk=run.pk)  # of two at once, the second counts the first's attempt
    attempt = Attempt.objects.create(run=run, number=run.attempts.count() + 1, resume_from=checkpoint, **how)
    if not lifecycle.move(run, RunState.QUEUED, actor=actor, cause=cause, attempt=attempt):
        raise Refused([Problem("state", f"the run has become {run.state} meanwhile", "Look again.")])
    advance_run(run.pk)
    return attempt


@transaction.atomic
def stop(run: Run, actor: str) -> None:
    """Ask for an end with a save. Asked twice, it is the same stop."""
    run = Run.objects.select_for_update().get(pk=run.pk)
    if run.state == RunState.STOPPING or (run.state == RunState.STOPPED and _was_asked_to_stop(run)):
        return
    if not run.can_stop:
        raise Refused([Problem("state", f"the run is {run.state}", "There is nothing to stop.")])
    Attempt.objects.filter(run=run, ended_at=None).update(stop_requested_at=timezone.now(), due_at=timezone.now())
    if run.state == RunState.QUEUED:
        reason, text = Reason.STOPPED_UNSAVED, "stopped before anything was started"
        lifecycle.move(run, RunState.STOPPED, actor=actor, cause="stop requested", reason=reason, text=text)
    else:
        lifecycle.move(run, RunState.STOPPING, actor=actor, cause="stop requested")
    advance_run(run.pk)


def _was_asked_to_stop(run: Run) -> bool:
    return run.attempt is not None and run.attempt.stop_requested_at is not None


def clone(run: Run, owner: User | None, changes: dict[str, Any] | None = None, name: str = "") -> Run:
    """Return a new draft with the same recipe but for `changes`."""
    overrides = merge(run.recipe, changes or {})
    order = Order(name or f"{run.name} (clone)"[:MAX_NAME], run.preset, overrides, run.model, run.dataset, run.cluster)
    return create(order, owner, cloned_from=run)


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
    _check_checkpoint(run, checkpoint)
    usual = export_settings(run.parsed_recipe())
    dtype, adapter = dtype or usual["dtype"], adapter or usual["adapter"]
    if problems := [*_dtype_problems(dtype), *_adapter_problems(run, adapter)]:
        raise Refused(problems)
    made = Export.objects.create(checkpoint=checkpoint, dtype=dtype, adapter=adapter, requested_by=user)
    data: dict[str, object] = {"export": made.pk, "old": "", "new": made.state, "reason": ""}
    source = f"exportstate@{made.pk}"
    journal.add(checkpoint.attempt, "export", seq=0, at=made.created_at, data=data, source=source)
    advance_export(made.pk)
    return made


def _dtype_problems(dtype: str) -> Iterator[Problem]:
    known = [choice for choice, _ in Export._meta.get_field("dtype").choices or []]
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


def place(attempt: Attempt, nodes: Sequence[Any]) -> list[Placement]:
    """Write down where `attempt` runs, as the nodes are now."""
    return [
        Placement.objects.create(attempt=attempt, node=node, rank=rank, slot=vars(node.slot()))
        for rank, node in enumerate(nodes)
    ]
