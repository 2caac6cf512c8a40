"""The passport that goes with an export: of the rows, as they were for the checkpoint."""

from __future__ import annotations

import json

import pytest

from training.spec.passport import NodeFacts, Passport
from webapp.runs import actions
from webapp.runs.models import Export, Placement
from workers.export import passport

from .rows import Feed, World

SECRET = "hf_verysecret"
COMMAND = ["python", "-m", "training", "tokenise", "/r.json", "python", "-m", "accelerate.commands.launch"]
CHECK = {
    "hostname": "alpha", "python": "3.11.9", "cores": 64, "ram_total": 1 << 40, "cuda": "12.8", "nccl": "2.26",
    "versions": {"torch": "2.13.0", "trl": "1.16.0", "flash_attn": None}, "ram_available": 5, "clock": 1.0,
    "gpus": [{"index": 0, "name": "H100", "memory_total": 80 << 30, "memory_used": 7, "driver": "570.86"}] * 8,
}  # fmt: skip


def launched(run: Feed) -> None:
    """Write down what a launch is made of, as the preparing step does."""
    facts = {"check": CHECK, "command": COMMAND, "variables": ["HF_TOKEN", "NCCL_DEBUG"]}
    Placement.objects.filter(attempt=run.run.attempt).update(facts=facts)


@pytest.fixture
def export(world: World) -> Export:
    feed = world.running()
    launched(feed)
    feed.started()
    feed.write("train@0", ("data", None, {"rows": 9, "kept": 9}))
    feed.metrics(5.0, 4.0)
    feed.checkpoint(2)
    feed.metrics(0.25, after=2)
    return actions.export(feed.run, world.user, checkpoint=feed.run.attempt.checkpoints.get(step=2))


def test_it_says_what_made_the_weights_and_nothing_of_later(export: Export, world: World) -> None:
    told = Passport.model_validate_json(passport.text(export))
    assert (told.composed_of, told.run.id, told.run.owner, told.asked_by) == ("rows", export.run.pk, "ada", "ada")
    assert told.recipe == export.run.recipe
    assert (told.model.location, told.dataset.sha256) == (world.model.location, world.version.digest)
    assert (told.dataset.rows, told.dataset.trained) == (world.version.rows, {"rows": 9, "kept": 9})
    assert told.losses.last is not None
    assert told.losses.lowest is not None
    assert (told.losses.last.loss, told.losses.lowest.step) == (4.0, 2)
    (attempt,) = told.attempts
    assert (attempt.last_step, attempt.facts["world_size"]) == (2, 2)
    node = attempt.nodes[0]
    assert (node.name, node.variables) == ("alpha", ("HF_TOKEN", "NCCL_DEBUG"))
    assert node.commands == (tuple(COMMAND[:5]), tuple(COMMAND[5:]))
    assert NodeFacts.model_validate({"rank": 0, "command": COMMAND}).commands == node.commands, "as it was told before"
    assert node.versions == {
        "python": "3.11.9", "torch": "2.13.0", "trl": "1.16.0", "cuda": "12.8", "nccl": "2.26", "driver": "570.86"
    }  # fmt: skip
    assert len(node.hardware["gpus"]) == 8
    assert "memory_used" not in node.hardware["gpus"][0]


def test_it_is_the_same_on_every_start(export: Export) -> None:
    first = passport.text(export)
    Feed(export.run, list(export.run.cluster.nodes.all())).run.attempt.placements.update(facts={})
    export.refresh_from_db()
    export.passport = {
        **export.passport,
        "export": json.loads('{"dtype": "bfloat16", "adapter": "none", "max_shard_bytes": 5}'),
    }
    assert passport.text(export) == first


def test_an_export_of_a_resumed_attempt_tells_both(export: Export, world: World) -> None:
    run = export.run
    run.attempt.refresh_from_db()
    Feed(run, world.nodes).end("failed", reason="killed_by_host")
    run.refresh_from_db()
    actions.resume(run, "ada", export.checkpoint)
    feed = world.started(run)
    launched(feed)
    feed.started()
    feed.metrics(3.0, after=2)
    later = feed.checkpoint(3)
    told = passport.compose(Export(checkpoint=later, requested_by=None))
    assert [(a.number, a.first_step, a.last_step) for a in told.attempts] == [(1, 1, 2), (2, 3, 3)]
    assert told.attempts[1].resumed_from == "attempt 1, checkpoint-2"
    assert told.losses.first is not None
    assert told.losses.last is not None
    assert (told.losses.first.loss, told.losses.last.loss) == (5.0, 3.0)
