"""A stop leaves nothing running, whenever it comes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path

import asyncssh
import pytest
from django.db import connection
from django.utils import timezone

from tests.workers.world import GENEROUS, Following, World, exits, stored_equals_written
from training.saving import checkpoints
from webapp.fleet.models import Claim
from webapp.fleet.ssh import patience
from webapp.runs import actions, page
from webapp.runs.models import Attempt, Placement, Run
from workers import advance
from workers.end import finish
from workers.launch import start
from workers.nodejob import heed


def asked_before(run: Run, seconds: float) -> None:
    """Set the clock of the request to stop back."""
    asked = timezone.now() - timedelta(seconds=seconds)
    Attempt.objects.filter(pk=run.attempt.pk).update(stop_requested_at=asked)


def test_it_stops_while_preparing_without_starting_anything(world: World) -> None:
    run = world.drive(world.run(), lambda r: r.state == "preparing")
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert not (Path(world.nodes[0].scratch) / "runs").exists()
    assert not Claim.objects.exists()


class Endless(asyncssh.SFTPServer):
    """Says for ever nothing of the data set."""

    def __init__(self, chan: asyncssh.SSHServerChannel, reached: threading.Event):
        super().__init__(chan)
        self._reached = reached

    async def stat(self, path: bytes) -> os.stat_result:
        if path.endswith(b"/train.jsonl"):
            self._reached.set()
            await asyncio.Event().wait()
        return os.stat(self.map_path(path))


def test_a_stop_breaks_off_a_preparation_that_takes_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heed, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(patience, "SECONDS", 1e6)  # as long as a large data set takes
    reached, host = threading.Event(), world.hosts[1]
    host.stop()
    host.sftp = partial(Endless, reached=reached)
    host.start()
    run = world.drive(world.run(), lambda r: r.state == "preparing")

    def look() -> None:
        advance.advance(run.pk)
        connection.close()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    assert reached.wait(GENEROUS)
    actions.stop(run, "ada")
    looking.join(GENEROUS)
    assert not looking.is_alive()
    world.to(run, "stopped")


def test_it_stops_between_the_files_and_the_start(world: World) -> None:
    run = world.drive(world.run(), lambda r: r.state == "starting")
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert world.supervisors() == []
    start._start(run.attempt, finish.prepared(run.attempt))  # a start that was on its way comes too late
    assert world.supervisors() == []


def test_it_stops_what_has_started_but_not_begun_to_train(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1)
    run = world.drive(world.run(), lambda r: r.attempt.placements.filter(started_at__isnull=False).count() == 2)
    Attempt.objects.filter(pk=run.attempt.pk).update(world_size=0)
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert world.supervisors() == []
    stored_equals_written(run)


def test_what_does_not_listen_is_killed_when_the_recipes_time_is_over(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1, deaf=True)
    run = world.to(world.run(limits={"stop_seconds": 900}), "running")
    job = run.attempt.placements.get(rank=0).node.scratch + f"/runs/{run.pk}/1/node0/job.json"
    assert json.loads(Path(job).read_text())["grace_seconds"] == 900
    actions.stop(run, "ada")
    asked_before(run, 800)
    advance.advance(run.pk)
    run.refresh_from_db()
    assert run.state == "stopping"
    assert len(world.supervisors()) >= 2  # a save may still be on its way
    asked_before(run, 901)
    world.to(run, "stopped")
    assert run.reason == "stopped_unsaved"
    assert world.supervisors() == []
    assert all(row.proven_gone_at for row in Placement.objects.all())
    stored_equals_written(run)


def test_where_one_nodes_part_of_the_save_is_lost_nobody_waits_for_the_rest(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.1, deaf=True, fail={"1": 40})
    run = world.to(world.run(limits={"stop_seconds": 900}), "running")
    actions.stop(run, "ada")
    advance.advance(run.pk)
    world.to(run, "stopped")
    assert exits(run) == ["stopped_unsaved", "rank_failed"]
    assert (run.reason, world.supervisors()) == ("stopped_unsaved", [])


def test_a_run_that_finishes_meanwhile_has_succeeded(world: World, following: Following) -> None:
    world.behave(steps=3, pace=0.3)
    run = world.to(world.run(), "running")
    world.drive(run, lambda r: all(exits(r)), step=lambda: None)
    actions.stop(run, "ada")
    world.to(run, "succeeded")
    assert run.reason == "completed"


def test_a_stop_that_waits_is_asked_for_again_and_then_turned_into_now(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.05, deaf=True)
    run = world.to(world.run(), "running")
    for actor in ("ada", "bob"):
        actions.stop(run, actor)
        advance.advance(run.pk)
    run.refresh_from_db()
    assert [t.actor for t in run.transitions.filter(new="stopping")] == ["ada"]
    assert [row.text for row in page.ending(run)["nodes"]] == ["told to finish its step, save and end"] * 2
    actions.stop(run, "bob", "now")
    actions.stop(run, "ada", "now")
    assert [event.data["actor"] for event in run.events.filter(kind="stop")] == ["bob"]
    world.to(run, "stopped")
    assert (run.reason, world.supervisors()) == ("stopped_unsaved", [])
    for node in page.ending(run)["nodes"]:
        assert node.proven
        assert re.fullmatch(r"no process left, no GPU here, [\d.]+ s after the request", node.text)


@pytest.mark.parametrize(("how", "reason", "newest"), [("graceful", "stopped", 3), ("now", "stopped_unsaved", 0)])
def test_a_save_in_the_middle_of_which_it_is_stopped_is_whole_or_incomplete(
    world: World, following: Following, how: str, reason: str, newest: int
) -> None:
    world.behave(steps=1000, pace=0.01, save_waits=True)
    run = world.to(world.run(), "running")
    attempts = [Path(node.scratch) / f"runs/{run.pk}/1" for node in world.nodes]
    saves = [attempt / "checkpoints/checkpoint-2" for attempt in attempts]
    world.drive(run, lambda r: all(save.exists() for save in saves), step=lambda: None)
    actions.stop(run, "ada", how)
    if how == "graceful":
        jobs = [attempt / f"node{rank}" for rank, attempt in enumerate(attempts)]
        world.drive(run, lambda r: all((job / "stop").exists() for job in jobs))
        for node in world.nodes:
            (Path(node.scratch) / "go").touch()
    world.to(run, "stopped")
    assert run.reason == reason
    assert [bool(checkpoints.manifests(save)) for save in saves] == [newest > 0] * 2
    found = actions.newest_checkpoint(run)
    assert (found.step if found else 0) == newest


def test_it_has_not_stopped_while_a_gpu_is_not_back(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.05)
    run = world.to(world.run(), "running")
    first = Path(world.nodes[0].scratch)
    began = first / f"runs/{run.pk}/1/node0/began.json"
    began.write_text(json.dumps(json.loads(began.read_text()) | {"gpus": [{"index": 0, "used": 3 << 20}]}))
    (first / "driver.json").write_text(json.dumps([{"used": 9 << 30}]))
    actions.stop(run, "ada", "now")
    world.drive(run, lambda r: r.events.filter(kind="proof").count() == 2)
    assert run.state == "stopping"
    assert page.ending(run)["nodes"][0].text.startswith("no process left, GPU 0 holds 9.66 GB, before 3.15 MB")
    (first / "driver.json").write_text(json.dumps([{"used": 3 << 20}]))
    world.to(run, "stopped")
    (told, _) = page.ending(run)["nodes"]
    assert (told.proven, "GPU memory 3.15 MB as before" in told.text) == (True, True)


def test_a_node_that_is_away_is_not_called_stopped_and_is_cleared_when_it_returns(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "PATIENCE", timedelta(seconds=2))
    world.behave(steps=100000, pace=0.1, deaf=True)
    run = world.to(world.run(), "running")
    world.hosts[1].stop()
    actions.stop(run, "ada")
    asked_before(run, 61)  # the tiny recipe's time to stop
    world.drive(run, lambda r: r.has_ended)
    assert "n1" in run.reason_text
    assert world.supervisors() != []  # on the node that is away
    (there, away) = page.ending(run)["nodes"]
    assert (there.proven, away.proven, away.text[:19]) == (True, False, "it can't be reached")
    world.hosts[1].start()
    assert list(finish.unproven()) == [run.attempt]
    world.drive(run, lambda r: not finish.unproven().exists())  # a node that was away is tried at growing distances
    assert world.supervisors() == []
    assert all(node.proven for node in page.ending(run)["nodes"])
    stored_equals_written(run)
