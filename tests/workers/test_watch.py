"""A node that ends, or goes silent, ends the run; one that only can't be reached does not."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from tests.workers.world import Following, World, stored_equals_written
from webapp.runs.models import Placement, Run
from workers import advance
from workers.end import finish, watch


def supervisor(world: World, run: Run, node: int) -> int:
    folder = Path(world.nodes[node].scratch) / "runs" / str(run.pk) / "1" / f"node{node}"
    for pid in world.supervisors():
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        if "supervise" in words and str(folder) in words:
            return pid
    raise AssertionError("no supervisor")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SILENCE", timedelta(seconds=3))
    monkeypatch.setattr(finish, "PATIENCE", timedelta(seconds=2))


def test_a_killed_supervisor_ends_the_run_on_every_node(world: World, following: Following, impatient: None) -> None:
    world.behave(steps=100000, pace=0.1)
    run = world.to(world.run(), "running")
    os.kill(supervisor(world, run, 1), signal.SIGKILL)
    world.drive(run, lambda r: r.has_ended)
    assert (run.state, run.reason) == ("failed", "supervisor_lost")
    assert "n1" in run.reason_text
    assert world.supervisors() == []
    stored_equals_written(run)


def test_a_node_that_is_away_does_not_end_the_run(world: World, following: Following, impatient: None) -> None:
    world.behave(steps=60, pace=0.1)
    run = world.to(world.run(), "running")
    world.hosts[1].stop()
    world.drive(run, lambda _: Placement.objects.get(rank=1).unreachable_since is not None)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "running"
    world.hosts[1].start()
    world.to(run, "succeeded")
    assert Placement.objects.get(rank=1).unreachable_since is None
    stored_equals_written(run)


def test_without_any_follower_the_run_still_ends_whole(world: World, impatient: None) -> None:
    world.behave(steps=6, pace=0.05)
    run = world.run()
    world.drive(run, lambda r: r.has_ended)
    assert (run.state, run.step) == ("succeeded", 6)
    stored_equals_written(run)


def test_a_job_folder_that_vanished_is_a_lost_supervisor(world: World, following: Following, impatient: None) -> None:
    world.behave(steps=100000, pace=0.1)
    run = world.to(world.run(), "running")
    runs = Path(world.nodes[1].scratch) / "runs"
    runs.rename(runs.with_name("lost"))
    world.drive(run, lambda r: r.has_ended)
    assert run.state == "failed"
    assert "n1" in run.reason_text
