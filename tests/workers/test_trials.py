"""Trials on real hosts: models answer over SSH, one trial at a time, and never in the way of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from tests.training import bytewise
from tests.training.test_answer import by_generate
from tests.workers.world import Following, World
from training.spec.answer import AnswerJob
from webapp.fleet.models import Claim
from webapp.runs import journal, lifecycle, sources
from webapp.runs.models import Checkpoint, Export, Run, Stream
from webapp.trials import actions
from webapp.trials.models import Trial
from workers import advance as runs
from workers.end.settle import Settled
from workers.nodejob import advance
from workers.nodejob.work import member_of
from workers.trials.answering import Answering

HI = [{"messages": [{"role": "user", "content": "hi"}]}]
LONG = {"max_new_tokens": 400}


@pytest.fixture
def ready(world: World) -> Export:
    """A run with an export on the first node that was never trained: other weights than its base's."""
    bytewise.build(world.folder / "model")
    run = world.run(prompts={"ask": ["one", "two"], "max_new_tokens": 5})
    checkpoint = Checkpoint.objects.create(attempt=run.attempt, step=4, nodes=2, world_size=2)
    node = world.nodes[0]
    export = Export.objects.create(checkpoint=checkpoint, dtype="float32", node=node, slot=vars(node.slot()))
    bytewise.build(Path(export.folder.model), 1)
    return export


def ask(export: Export, *models: Export | None, **how: Any) -> Trial:
    Export.objects.filter(pk=export.pk).update(state="ready")
    how = {"prompts": HI, "sampling": {"max_new_tokens": 30}} | how
    return actions.ask(export.run, None, models or (None, export), **how)


def drive(world: World, trial: Trial, until: Callable[[], Any]) -> Trial:
    def there(_: Run) -> Any:
        trial.refresh_from_db()
        return until()

    return world.drive(trial.run, there, step=lambda: advance.advance("trial", trial.pk)) and trial


def ended(world: World, trial: Trial) -> Trial:
    return drive(world, trial, lambda: trial.has_ended)


def speaking(world: World, trial: Trial) -> Trial:
    return drive(world, trial, lambda: trial.has_ended or trial.answers.exclude(text="").exists())


@pytest.mark.ranks
def test_base_and_export_answer_on_the_node_that_has_them(world: World, ready: Export, following: Following) -> None:
    Export.objects.filter(pk=ready.pk).update(state="running")
    ready.refresh_from_db()
    assert lifecycle.move_job(ready, "ready")
    trial = ended(world, Trial.objects.get())  # of the recipe's own prompts, made with the export
    assert (trial.state, trial.kind, trial.reason_text) == ("answered", "fixed", "finished")
    folders = [world.folder / "model", Path(ready.folder.model)]
    for answer in trial.answers.all():
        asked = f"[user:{('one', 'two')[answer.prompt]}]"
        assert answer.text == by_generate(folders[answer.model], asked, 5)
        assert answer.stopped_by in ("eos", "tokens")
    assert [(one["state"], one["device"]) for one in trial.asked] == [("ready", "cpu")] * 2
    assert not (Path(trial.folder.path) / "env").exists()
    stream = Stream.objects.get(source=f"trial@{trial.pk}")
    assert stream.closed_at is not None
    assert stream.offset == Path(stream.path).stat().st_size


@pytest.mark.ranks
def test_a_trial_waits_gives_way_and_then_stands_back(world: World, ready: Export, following: Following) -> None:
    first, second = ask(ready, sampling=LONG, prompts=HI * 20), ask(ready, None, seconds=1.0)
    speaking(world, first)
    advance.advance("trial", second.pk)
    second.refresh_from_db()
    assert second.state == "queued"
    runs.advance(first.run.pk)  # it was queued all the time, and takes both nodes
    ended(world, first)
    assert (first.state, "a run took the node" in first.reason_text) == ("failed", True)
    assert first.answers.exclude(text="").exists()
    assert first.answers.exclude(stopped_by="").count() == 40
    ended(world, second)
    assert (second.state, second.beside) == ("answered", True)
    job = AnswerJob.model_validate_json(Path(second.folder.recipe).read_text())
    assert (job.device, job.threads, job.nice, job.reserve) == ("cpu", 1, 19, 0.25)
    assert Answering().plan(second, member_of(second)).env["CUDA_VISIBLE_DEVICES"] == ""
    assert (second.reason, second.reason_text[:30]) == ("time_limit", "the time of 1 s was over while")
    assert second.answers.get().stopped_by == "time"


def test_fixed_prompts_that_a_run_came_between_are_put_again(world: World, ready: Export) -> None:
    Export.objects.filter(pk=ready.pk).update(state="running")
    ready.refresh_from_db()
    assert lifecycle.move_job(ready, "ready")
    trial = Trial.objects.get()
    for state in ("preparing", "running"):
        assert lifecycle.move_job(trial, state)
    source, end = sources.node("trial", trial.pk), {"reason": "stopped"}
    with transaction.atomic():
        journal.add(trial.told_in, "exit", seq=1, at=timezone.now(), data=end, source=source)
    Claim.objects.create(node=world.nodes[0], attempt=trial.told_in)
    Answering().conclude(trial, Settled())
    assert [row.state for row in Trial.objects.order_by("pk")] == ["failed", "queued"]
    assert [one["export"] for one in Trial.objects.get(pk=trial.pk + 1).asked] == [None, ready.pk]
