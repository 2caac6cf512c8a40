"""Actions refuse with field, reason and way out before anything is touched; what they do is one transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.runs.test_journal import attempt  # noqa: F401  the same small world
from training.spec.lint import Refused
from webapp.fleet.models import Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Checkpoint, Export, Run
from webapp.runs.queue.board import slots
from webapp.runs.queue.wish import Wish
from webapp.runs.states import RunState

pytestmark = pytest.mark.django_db


def order(run: Run) -> actions.Order:
    return actions.Order("another", "tiny", {}, run.model, run.dataset, run.cluster)


def checkpoint(attempt: Attempt, step: int, **fields: object) -> Checkpoint:  # noqa: F811
    made = {"nodes": 1, "world_size": 1, "completed_at": attempt.created_at} | fields
    return Checkpoint.objects.create(attempt=attempt, step=step, **made)


def stopped(attempt: Attempt) -> Run:  # noqa: F811
    lifecycle.move(attempt.run, RunState.STOPPED, actor="t", cause="t")
    return Run.objects.get()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"preset": "nope"}, "preset"),
        ({"overrides": {"optimisation": {"learning_rate": 2}}}, "optimisation.learning_rate"),
        ({"overrides": {"optimisation": {"lerning_rate": 1}}}, "optimisation.lerning_rate"),
        ({"overrides": {"data": {"format": "text"}}}, "dataset"),
        ({"overrides": {"data": {"format": "prompt-completion"}}}, "dataset"),
        ({"overrides": {"fsdp": {"version": 1}}}, "fsdp.version"),
        ({"overrides": {"model": {"name": "org/model"}}}, "model.name"),
        ({"overrides": {"model": {"revision": "main"}}}, "model.revision"),
        ({"overrides": {"data": {"train": "/rows.jsonl"}}}, "data.train"),
        ({"overrides": {"data": {"test": "/rows.jsonl"}}}, "data.test"),
    ],
)
def test_a_bad_order_names_its_field_and_makes_no_run(
    attempt: Attempt, changes: dict[str, object], field: str  # noqa: F811
) -> None:  # fmt: skip
    with pytest.raises(Refused) as caught:
        actions.create(replace(order(attempt.run), **changes), None)
    assert field in [p.field for p in caught.value.problems]
    assert all(p.reason and p.fix for p in caught.value.problems)
    assert Run.objects.count() == 1


def test_every_problem_is_told_at_once(attempt: Attempt) -> None:  # noqa: F811
    bad = replace(order(attempt.run), name="", overrides={"precision": "fp8", "limits": {"non_finite_steps": 0}})
    with pytest.raises(Refused) as caught:
        actions.create(bad, None)
    assert {p.field for p in caught.value.problems} == {"name", "precision", "limits.non_finite_steps"}


def test_a_run_is_launched_once(attempt: Attempt) -> None:  # noqa: F811
    with pytest.raises(Refused, match="not a draft"):
        actions.launch(attempt.run, "ada")
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize(("how", "rests"), [("graceful", False), ("now", True)])
def test_a_queued_run_stops_at_once_and_asked_again_it_is_the_same_stop(
    attempt: Attempt, how: str, rests: bool  # noqa: F811
) -> None:  # fmt: skip
    """Also one that the service has queued again, and that leaves its nodes in peace for a while."""
    if rests:
        Attempt.objects.update(restart=1, not_before=timezone.now() + timedelta(minutes=5))
    with pytest.raises(Refused, match="no way to stop"):
        actions.stop(attempt.run, "ada", "softly")
    actions.stop(attempt.run, "ada", how)
    run = Run.objects.get()
    assert (run.state, run.reason, run.reason_text) == (
        "stopped",
        "stopped_unsaved",
        "stopped before anything was started",
    )
    moves = run.transitions.count()
    actions.stop(run, "bob")
    assert run.transitions.count() == moves
    assert Run.objects.get().reason_text == "stopped before anything was started"


def test_a_resume_takes_the_newest_complete_checkpoint(attempt: Attempt) -> None:  # noqa: F811
    checkpoint(attempt, 2)
    checkpoint(attempt, 4)
    checkpoint(attempt, 6, completed_at=None)
    checkpoint(attempt, 8, deleted_at=attempt.created_at)
    again = actions.resume(stopped(attempt), "ada")
    assert (again.number, again.resume_from.step) == (2, 4)
    assert Run.objects.get().state == "queued"


@pytest.mark.parametrize("fields", [{"completed_at": None}, {"deleted_at": "2024-01-01T00:00Z"}, {"step": 12}])
def test_a_resume_that_can_not_be_is_refused(attempt: Attempt, fields: dict[str, object]) -> None:  # noqa: F811
    there = checkpoint(attempt, **({"step": 4} | fields))
    with pytest.raises(Refused) as caught:
        actions.resume(stopped(attempt), "ada", there)
    assert caught.value.problems[0].field == "checkpoint"
    assert Run.objects.get().state == "stopped"
    assert Attempt.objects.count() == 1


def test_a_resume_reads_from_drained_nodes_but_not_from_removed_ones(attempt: Attempt) -> None:  # noqa: F811
    newest = checkpoint(attempt, 2)
    run = stopped(attempt)
    Node.objects.update(in_service=False, removed_at=timezone.now())
    with pytest.raises(Refused, match=r"not reached any more.*Bring it back"):
        actions.resume(run, "ada")
    assert not actions.may_resume(run, newest), "no button for what would be refused"
    Node.objects.update(removed_at=None)
    assert actions.may_resume(run, newest)
    assert actions.resume(run, "ada").resume_from == newest


def test_a_clone_is_a_draft_with_the_changes(attempt: Attempt) -> None:  # noqa: F811
    made = actions.clone(attempt.run, None, {"optimisation": {"max_steps": 3}})
    assert (made.state, made.total_steps, made.cloned_from) == ("draft", 3, attempt.run)
    assert made.recipe["optimisation"]["learning_rate"] == attempt.run.recipe["optimisation"]["learning_rate"]


def test_an_export_needs_a_complete_checkpoint_and_a_known_dtype(attempt: Attempt) -> None:  # noqa: F811
    run = attempt.run
    with pytest.raises(Refused, match="no complete checkpoint"):
        actions.export(run, None)
    there = checkpoint(attempt, 2)
    with pytest.raises(Refused, match="number format"):
        actions.export(run, None, there, "int3")
    assert not Export.objects.exists()
    assert actions.export(run, None).dtype == "base"


def test_an_adapters_run_is_exported_merged_or_alone(attempt: Attempt) -> None:  # noqa: F811
    run, there = attempt.run, checkpoint(attempt, 2)
    with pytest.raises(Refused, match="adapter: this run trained the whole model"):
        actions.export(run, None, there, adapter="merged")
    assert actions.export(run, None, there).adapter == "none"
    run.recipe |= {"method": {"kind": "lora"}, "export": {"adapter": "adapter"}}
    with pytest.raises(Refused, match="'none' is no way to export an adapter"):
        actions.export(run, None, there, adapter="none")
    assert actions.export(run, None, there).adapter == "adapter", "the recipe's choice"
    assert actions.export(run, None, there, adapter="merged").adapter == "merged"


def test_a_recipe_stored_before_a_field_was_known_still_parses(attempt: Attempt) -> None:  # noqa: F811
    run = attempt.run
    run.recipe["limits"].pop("stop_seconds")
    run.save(update_fields=["recipe"])
    assert Run.objects.get().parsed_recipe().limits.stop_seconds == 600


def test_epochs_are_counted_in_steps(attempt: Attempt) -> None:  # noqa: F811
    ordered = replace(order(attempt.run), overrides={"optimisation": {"epochs": 2, "per_device_batch": 1}})
    ranks = sum(slot.processes for slot in slots(ordered.cluster, Wish()))
    assert actions.create(ordered, None).total_steps == 2 * -(-ordered.dataset.rows // ranks)
