"""Launching: once whatever is delivered, whole whatever breaks."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from tests.workers.world import Following, World, exits, stored_equals_written
from webapp.fleet.models import Claim
from webapp.runs import actions
from webapp.runs.models import Stream
from webapp.runs.states import RunState
from workers import advance, lease, shards
from workers.end.ending import End
from workers.launch import prepare, release
from workers.launch import start as starting


def test_two_runs_never_hold_one_node(world: World, following: Following) -> None:
    first, second = world.run(), world.run()
    for run in (second, first, second):
        advance.advance(run.pk)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == ("preparing", "queued")
    assert {claim.attempt_id for claim in Claim.objects.all()} == {first.attempt.pk}
    world.to(first, "succeeded")
    world.to(second, "succeeded")


def test_a_node_held_by_another_cluster_s_run_leaves_no_half_claim(world: World) -> None:
    run, other = world.run(), world.run()
    Claim.objects.create(node=world.nodes[1], attempt=other.attempt)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "queued"
    assert Claim.objects.count() == 1
    assert not run.attempt.placements.exists()


def test_an_unreachable_node_is_tried_again_and_then_ends_the_run(world: World) -> None:
    run = world.to(world.run(), "preparing")
    run.transitions.update(at=timezone.now() - timedelta(hours=1))  # it has copied since
    world.hosts[1].stop()
    for _ in range(2):
        advance.advance(run.pk)
        run.refresh_from_db()
        assert run.state == "preparing"
    run.attempts.update(unreachable_since=F("unreachable_since") - advance.RETRY_FOR)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "node_unreachable")
    assert "n1" in run.reason_text
    assert not Claim.objects.exists()


def test_a_node_that_is_back_has_all_its_time_again(world: World) -> None:
    run = world.to(world.run(), "preparing")
    world.hosts[1].stop()
    advance.advance(run.pk)
    assert run.attempts.get().unreachable_since
    world.hosts[1].start()
    run = world.to(run, "starting")
    assert (run.state, run.attempt.unreachable_since) == ("starting", None)


def test_delivered_twice_at_once_it_is_launched_once(world: World, following: Following) -> None:
    world.behave(steps=6, pace=0.3)
    run = world.to(world.run(), "starting")
    errors: list[Exception] = []

    def deliver() -> None:
        try:
            for _ in range(4):
                advance.advance(run.pk)
        except Exception as error:  # noqa: BLE001  the test shows it
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(world.starts()) == 2  # one a node
    world.to(run, "succeeded")
    stored_equals_written(run)


def test_a_held_lease_makes_others_go_away_and_come_back(world: World) -> None:
    run = world.run()
    with lease.hold(run.attempt) as held:
        assert held
        advance.advance(run.pk)
        run.refresh_from_db()
        assert run.state == "queued"
        assert run.attempt.due_at <= lease.timezone.now()  # looked at again
    advance.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "preparing"


def test_a_worker_that_died_while_putting_files_is_taken_over(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.to(world.run(), "preparing")
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "put_plans", dies_on_the_way)
        with pytest.raises(SystemExit):
            advance.advance(run.pk)
    world.to(run, "succeeded")
    stored_equals_written(run)


def test_a_worker_that_died_between_two_starts_is_taken_over(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.behave(steps=8, pace=0.2)
    run = world.to(world.run(), "starting")
    real = starting._start
    with monkeypatch.context() as patch:
        patch.setattr(starting, "_start", lambda attempt, members: (real(attempt, members[:1]), dies()))
        with pytest.raises(SystemExit):
            advance.advance(run.pk)
    run.attempt.placements.update(started_at=None)  # as if it had died before it could write that down
    world.to(run, "succeeded")
    assert len(world.starts()) == 3
    stored_equals_written(run)


async def dies_on_the_way(*_: object) -> None:
    raise SystemExit


def dies(*_: object) -> None:
    raise SystemExit


def test_a_bug_of_ours_leaves_neither_claim_nor_process(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.behave(steps=1000, pace=0.2)
    run = world.to(world.run(), "running")
    monkeypatch.setitem(advance.STEPS, RunState.RUNNING, lambda run, attempt: 1 / 0)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "launch")
    assert "ZeroDivisionError" in run.reason_text
    assert world.supervisors() == []
    assert not Claim.objects.exists()
    stored_equals_written(run)


def test_the_first_node_that_failed_names_the_reason_and_the_others_are_ended(
    world: World, following: Following
) -> None:
    world.behave(steps=1000, pace=0.05, fail={"1": 4}, text="CUDA is cross")
    run = world.to(world.run(), "failed")
    assert run.reason == "rank_failed"
    assert "n1" in run.reason_text
    assert "CUDA is cross" in run.reason_text
    assert exits(run)[1] == "rank_failed"
    assert world.supervisors() == []
    stored_equals_written(run)


def test_files_are_put_once(world: World, following: Following) -> None:
    first = world.to(world.run(), "succeeded")
    folder = Path(world.nodes[0].scratch) / "releases" / release.current().digest
    stamp = folder.stat().st_mtime_ns, (folder / "training" / "__main__.py").stat().st_mtime_ns
    world.to(world.run(), "succeeded")
    assert stamp == (folder.stat().st_mtime_ns, (folder / "training" / "__main__.py").stat().st_mtime_ns)
    assert first.attempt.release == release.current().digest
    assert {p.name for p in folder.parent.iterdir()} == {release.current().digest, release.follower().digest}


def test_a_damaged_shard_is_not_resumed_from(world: World, following: Following) -> None:
    world.behave(steps=6, pace=0.01, fail={"0": 5})
    run = world.to(world.run(), "failed")
    checkpoint = actions.newest_checkpoint(run)
    assert checkpoint is not None
    there = Path(world.nodes[1].scratch) / "runs" / str(run.pk) / "1" / "checkpoints" / checkpoint.name / "shard-1"
    there.write_bytes(b"y" * there.stat().st_size)
    actions.resume(run, "ada")
    world.drive(run, lambda r: r.has_ended)
    assert (run.state, run.reason) == ("failed", "data")
    assert "shard-1" in run.reason_text
    assert "n1" in run.reason_text
    world.drive(run, lambda _: not world.supervisors(), step=lambda: None)  # what lent the shards has just ended


def test_a_manifest_that_points_outside_is_refused() -> None:
    for name in ("../x", "/etc/passwd", "a/../../x", ""):
        text = json.dumps({"files": {name: {"size": 1, "sha256": "0"}}})
        with pytest.raises(End, match="outside"):
            shards.manifest_files(text, "manifest-0.json")
    with pytest.raises(End, match="damaged"):
        shards.manifest_files("{", "manifest-0.json")


def test_no_stream_is_left_open(world: World, following: Following) -> None:
    world.to(world.run(), "succeeded")
    assert not Stream.objects.filter(closed_at=None).exists()
