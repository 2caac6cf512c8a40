"""Pins and deletions of checkpoints, done on real nodes: an unreachable one, deliveries in double, kills half-way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from tests.workers.world import World
from training.saving import removal
from training.saving.checkpoints import FileFacts, Manifest, write_manifest
from training.spec.folder import PIN, hold_name
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Checkpoint, CheckpointCopy, CheckpointPart, Event, Export, Run
from workers import sweep
from workers.checkpoints import advance


@pytest.fixture
def trained(world: World) -> Run:
    """A stopped run whose two nodes hold checkpoints 2 and 4 on disks of their own, as a training leaves them."""
    order = actions.Order("a run", "tiny", {}, world.model, world.version, world.cluster)
    run = actions.create(order, world.user)
    attempt = Attempt.objects.create(run=run, number=1, ended_at=timezone.now())
    actions.place(attempt, world.nodes)
    for step in (2, 4):
        row = Checkpoint.objects.create(
            attempt=attempt, step=step, nodes=2, world_size=2, completed_at=timezone.now()
        )  # fmt: skip
        for rank in range(2):
            size = write_part(world, row, rank)
            CheckpointPart.objects.create(checkpoint=row, node_rank=rank, bytes=size, files=1)
    Run.objects.update(state="stopped", total_steps=12)
    run.refresh_from_db()
    return run


def folder(world: World, row: Checkpoint, rank: int) -> Path:
    return Path(world.nodes[rank].scratch) / "runs" / str(row.attempt.run_id) / "1" / "checkpoints" / row.name


def write_part(world: World, row: Checkpoint, rank: int) -> int:
    place = folder(world, row, rank)
    place.mkdir(parents=True)
    (place / f"shard-{rank}").write_bytes(b"x" * 1000)
    facts = {f"shard-{rank}": FileFacts(size=1000, sha256="0" * 64)}
    write_manifest(place, Manifest(step=row.step, node_rank=rank, nodes=2, world_size=2, save="s", files=facts))
    return 1000


def at(run: Run, step: int) -> Checkpoint:
    return Checkpoint.objects.select_related("attempt__run").get(attempt__run=run, step=step)


def told(row: Checkpoint) -> list[str]:
    return [event.data["act"] for event in Event.objects.filter(kind="shelf").order_by("number")]


def deliver(key: int) -> None:
    try:
        advance.advance(key)
    finally:
        connection.close()


def test_a_pin_gets_to_every_node_and_waits_for_one_that_is_away(world: World, trained: Run) -> None:
    row = at(trained, 4)
    world.hosts[1].stop()
    actions.pin_checkpoint(row, True, "ada")
    advance.advance(row.pk)
    first, second = row.copies.order_by("id")
    assert (first.pinned, first.parts, second.pinned) == (True, [0], None)
    assert "n1: no connection" in second.problem
    row.refresh_from_db()
    assert (row.settled, row.due_at > timezone.now()) == (False, True)
    assert ((folder(world, row, 0) / PIN).exists(), (folder(world, row, 1) / PIN).exists()) == (True, False)
    world.hosts[1].start()
    advance.advance(row.pk)
    row.refresh_from_db()
    assert row.settled
    assert [copy.pinned for copy in row.copies.all()] == [True, True]
    actions.pin_checkpoint(row, False, "ada")
    advance.advance(row.pk)
    assert not list(Path(world.folder).rglob(PIN))
    assert told(row) == ["pinned", "pinned on every node", "unpinned", "unpinned on every node"]


def test_a_deletion_delivered_four_times_frees_the_bytes_once(world: World, trained: Run) -> None:
    row = at(trained, 2)
    there = sum(removal.size(folder(world, row, rank)) for rank in range(2))
    actions.delete_checkpoints(trained, [row], "ada")
    threads = [threading.Thread(target=deliver, args=(row.pk,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    advance.advance(row.pk)
    row.refresh_from_db()
    assert (row.settled, row.freed_bytes, row.deleted_at is not None) == (True, there, True)
    assert not any(folder(world, row, rank).exists() for rank in range(2))
    assert all(folder(world, at(trained, 4), rank).exists() for rank in range(2))
    assert told(row) == ["deletion asked", "deleted"]
    last = Event.objects.filter(kind="shelf").latest("number").data
    assert (last["actor"], last["freed"]) == ("ada", there)


def test_a_deletion_waits_for_a_node_that_is_away_and_the_sweep_comes_back(
    world: World, trained: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = at(trained, 2)
    there = sum(removal.size(folder(world, row, rank)) for rank in range(2))
    world.hosts[1].stop()
    actions.delete_checkpoints(trained, [row], "ada")
    advance.advance(row.pk)
    row.refresh_from_db()
    assert (row.settled, row.deleted_at, row.freed_bytes) == (False, None, None)
    assert [copy.deleted_at is None for copy in row.copies.order_by("id")] == [False, True]
    assert folder(world, row, 1).exists()
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(sweep.dispatch, "send", lambda *what: sent.append(what))
    sweep.sweep()
    due = [("workers.advance_checkpoint", row.pk)]
    assert due[0] not in sent  # not due yet
    Checkpoint.objects.filter(pk=row.pk).update(due_at=timezone.now())
    sweep.sweep()
    sweep.sweep()
    assert [what for what in sent if what[0] != "workers.look_at_node"] == due
    world.hosts[1].start()
    advance.advance(row.pk)
    row.refresh_from_db()
    assert (row.settled, row.freed_bytes) == (True, there)
    assert not folder(world, row, 1).exists()


def test_killed_between_the_deletion_and_its_row_it_still_knows_what_was_freed(world: World, trained: Run) -> None:
    """The first worker measured, had one node delete and died; on the other it died within the node's own command."""
    row = at(trained, 2)
    sizes = [removal.size(folder(world, row, rank)) for rank in range(2)]
    actions.delete_checkpoints(trained, [row], "ada")
    for copy, size in zip(row.copies.order_by("id"), sizes, strict=True):
        CheckpointCopy.objects.filter(pk=copy.pk).update(freed_bytes=size)
    removal.delete(folder(world, row, 0))
    folder(world, row, 1).rename(folder(world, row, 1).with_name(".deleted-checkpoint-2-0123abcd"))
    advance.advance(row.pk)
    row.refresh_from_db()
    assert (row.settled, row.freed_bytes) == (True, sum(sizes))
    assert not list(Path(world.folder).rglob(".deleted-*"))


def test_what_the_node_refuses_is_said_and_tried_again(world: World, trained: Run) -> None:
    """Pinned by hand on a node, and held there by an export whose end did not reach it."""
    row = at(trained, 2)
    export = Export.objects.create(checkpoint=row, dtype="bfloat16", adapter="none")
    lifecycle.move_job(export, "failed", text="x")
    removal.pin(folder(world, row, 0))
    (folder(world, row, 1) / hold_name(export.pk)).touch()
    actions.delete_checkpoints(trained, [row], "ada")
    advance.advance(row.pk)
    assert row.copies.earliest("id").problem == "n0: it is pinned. Unpin it first."
    assert (folder(world, row, 0).exists(), folder(world, row, 1).exists()) == (True, False)
    removal.unpin(folder(world, row, 0))
    advance.advance(row.pk)
    row.refresh_from_db()
    assert row.settled


def test_a_shared_disk_is_freed_once(world: World, trained: Run) -> None:
    row = at(trained, 2)
    beta = world.nodes[1]
    for placement in row.attempt.placements.filter(rank=1):
        placement.slot["scratch"] = world.nodes[0].scratch
        placement.save()
    write_shared = folder(world, row, 0)
    (folder(world, row, 1) / "shard-1").rename(write_shared / "shard-1")
    (folder(world, row, 1) / "manifest-1.json").rename(write_shared / "manifest-1.json")
    there = removal.size(write_shared)
    actions.look_at_checkpoint(row)
    advance.advance(row.pk)
    assert [copy.parts for copy in row.copies.all()] == [[0, 1], [0, 1]]
    actions.delete_checkpoints(trained, [row], "ada")
    advance.advance(row.pk)
    row.refresh_from_db()
    assert (row.freed_bytes, beta.name) == (there, "n1")


def test_what_a_node_has_lost_is_not_offered_any_longer(world: World, trained: Run) -> None:
    row, other = at(trained, 4), at(trained, 2)
    (folder(world, row, 1) / "shard-1").unlink()
    for rank in range(2):
        removal.delete(folder(world, other, rank))
    for asked in (row, other):
        actions.look_at_checkpoint(asked)
        advance.advance(asked.pk)
        asked.refresh_from_db()
    assert (row.settled, row.completed_at, row.deleted_at) == (True, None, None)
    assert (other.settled, other.deleted_at is not None, other.freed_bytes) == (True, True, None)
    assert told(row) == [
        "found incomplete: the part of node 1 is gone or damaged",
        "found gone from every node",
    ]
    advance.advance(10**6)
