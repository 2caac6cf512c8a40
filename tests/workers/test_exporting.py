"""An export's steps around the real job: shards brought to one node, started once, ended with a reason."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from django.db import connection

from tests.workers.world import Following, World
from training.spec.folder import HOLD, MODEL_FOLDER, hold_name
from webapp.fleet.models import Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Event, Export, Run, Stream
from workers.checkpoints import advance as checkpoints
from workers.nodejob import advance as nodejob

SHARD = f"{MODEL_FOLDER}/__1_0.distcp"


@pytest.fixture
def trained(world: World, following: Following) -> Run:
    return world.to(world.run(), "succeeded")


def drive(world: World, run: Run, export: Export, *states: str) -> Export:
    def there(_: Run) -> bool:
        export.refresh_from_db()
        return export.state in states

    world.drive(run, there, step=lambda: nodejob.advance("export", export.pk))
    return export


def starts(world: World) -> int:
    return sum("training start" in c and "/exports/" in c for host in world.hosts for c in host.commands)


def holds(world: World) -> int:
    return sum(1 for node in world.nodes for _ in Path(node.scratch).rglob(f"{HOLD}*"))


def folder(export: Export) -> Path:
    return Path(export.slot["scratch"]) / "runs" / str(export.run.pk) / "exports" / str(export.pk)


def test_the_shards_are_brought_to_rank_0_s_node_and_it_is_started_once(world: World, trained: Run) -> None:
    export = drive(world, trained, actions.export(trained, world.user), "gathering")
    assert export.node == world.nodes[0]
    threads = [threading.Thread(target=deliver, args=(export.pk,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drive(world, trained, export, "running", "failed")
    assert starts(world) == 1
    checkpoint = folder(export).parents[1] / "1" / "checkpoints" / "checkpoint-4"
    brought = {path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("*")} - {hold_name(export.pk)}
    wanted = {"shard-0", "manifest-0.json", "manifest-1.json", MODEL_FOLDER, SHARD, f"{MODEL_FOLDER}/__0_0.distcp"}
    assert brought == wanted, "what is not read stays where it is"
    assert export.foretold
    sizes = ((checkpoint / name).stat().st_size for name in (SHARD, "manifest-1.json"))
    assert export.foretold.reading.brought == sum(sizes)
    assert [path.name for path in checkpoint.glob(".*")] == [hold_name(export.pk)]
    assert holds(world) == 2
    drive(world, trained, export, "failed", "ready")
    assert holds(world) == 0


def deliver(export_id: int) -> None:
    try:
        nodejob.advance("export", export_id)
    finally:
        connection.close()


def test_a_checkpoint_that_is_none_fails_with_the_reason_and_leaves_no_folder(world: World, trained: Run) -> None:
    """The shards of these tests are text: the real exporter refuses them."""
    export = drive(world, trained, actions.export(trained, world.user), "failed", "ready")
    assert export.state == "failed"
    assert export.reason
    assert export.reason_text
    assert not (folder(export) / "model").exists()
    assert not Stream.objects.filter(closed_at=None).exists()
    assert Event.objects.filter(attempt=trained.attempt, source=f"exportnode@{export.pk}", kind="exit").count() == 1
    told = Event.objects.filter(source=f"exportstate@{export.pk}").order_by("number")
    assert [e.data["new"] for e in told] == ["queued", "planning", "gathering", "running", "failed"]


def test_a_node_that_lost_its_shard_ends_the_export_before_it_starts(world: World, trained: Run) -> None:
    shard = Path(world.nodes[1].scratch) / "runs" / str(trained.pk) / "1" / "checkpoints" / "checkpoint-4" / SHARD
    shard.write_bytes(b"z")
    export = drive(world, trained, actions.export(trained, world.user), "failed")
    assert (export.reason, SHARD in export.reason_text) == ("data", True)
    assert starts(world) == 0
    assert holds(world) == 0


def test_a_lost_copy_is_fetched_again_from_the_node_that_wrote_it(world: World, trained: Run) -> None:
    checkpoint = Path("runs") / str(trained.pk) / "1" / "checkpoints" / "checkpoint-4"
    drive(world, trained, actions.export(trained, world.user), "failed", "ready")
    copy = Path(world.nodes[0].scratch) / checkpoint / SHARD
    copy.unlink()
    drive(world, trained, actions.export(trained, world.user), "running", "failed")
    assert copy.read_bytes() == (Path(world.nodes[1].scratch) / checkpoint / SHARD).read_bytes()


@pytest.mark.parametrize("gone", ["checkpoint-4", f"checkpoint-4/{SHARD}"])
def test_a_checkpoint_that_was_rotated_away_ends_the_export_and_says_so(world: World, trained: Run, gone: str) -> None:
    for node in world.nodes:
        path = Path(node.scratch) / "runs" / str(trained.pk) / "1" / "checkpoints" / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    export = drive(world, trained, actions.export(trained, world.user), "failed")
    assert (export.reason, "rotated away; choose a newer one" in export.reason_text) == ("data", True)
    assert holds(world) == 0


def test_a_hold_that_cannot_be_taken_away_is_told(world: World, trained: Run) -> None:
    export = drive(world, trained, actions.export(trained, world.user), "running")
    world.hosts[1].stop()
    drive(world, trained, export, "failed", "ready")
    assert holds(world) == 1
    told = Event.objects.get(source="service:warning").data["text"]
    assert hold_name(export.pk) in told
    assert "n1" in told
    checkpoint = export.checkpoint
    checkpoints.advance(checkpoint.pk)
    assert holds(world) == 1
    world.hosts[1].start()
    checkpoints.advance(checkpoint.pk)
    checkpoint.refresh_from_db()
    assert (holds(world), checkpoint.settled, checkpoint.usable) == (0, True, True)


def test_a_changed_host_key_ends_the_export(world: World, trained: Run) -> None:
    Node.objects.filter(name="n1").update(host_key=Node.objects.get(name="n0").host_key)
    export = drive(world, trained, actions.export(trained, world.user), "failed")
    assert export.reason == "host_key_changed"


def test_an_ended_export_is_left_alone(world: World, trained: Run) -> None:
    export = actions.export(trained, world.user)
    lifecycle.move_job(export, "failed", text="x")
    nodejob.advance("export", export.pk)
    export.refresh_from_db()
    assert (export.state, export.reason_text) == ("failed", "x")
    nodejob.advance("export", 10**6)
