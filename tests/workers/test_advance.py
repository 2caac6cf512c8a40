"""A run's whole life on two nodes: the real service, SSH, supervisors and files."""

from __future__ import annotations

from pathlib import Path

from tests.workers.world import Following, World, exits, stored_equals_written
from webapp.fleet.models import Claim
from webapp.runs import actions, series
from webapp.runs.models import Checkpoint, Event


def test_a_run_succeeds_and_every_line_is_stored(world: World, following: Following) -> None:
    run = world.to(world.run(), "succeeded")
    assert (run.reason, run.step, run.total_steps) == ("completed", 4, 4)
    assert exits(run) == ["completed", "completed"]
    assert run.attempt.world_size == 2
    stored_equals_written(run)
    assert not Claim.objects.exists()
    assert [c.step for c in Checkpoint.objects.filter(completed_at__isnull=False)] == [2, 4]
    losses = series.read(run, "loss")
    assert losses is not None
    assert (losses.steps, losses.values) == ([1, 2, 3, 4], [1.0, 1 / 2, 1 / 3, 1 / 4])
    log = Event.objects.filter(attempt=run.attempt, source="log@1").values_list("data", flat=True)
    assert {"text": "rank 1 at work"} in log
    assert {"text": "30%"} in log
    states = [t.new for t in run.transitions.all()]
    assert states == ["queued", "preparing", "starting", "running", "succeeded"]
    assert world.supervisors() == []
    assert (Path(world.nodes[0].scratch) / "runs" / str(run.pk) / "1" / "node0" / "env").stat().st_mode & 0o777 == 0o600


def test_a_stop_saves_and_a_resume_goes_on_with_all_shards(world: World, following: Following) -> None:
    world.behave(steps=1000, pace=0.05)
    run = world.to(world.run(), "running")
    world.drive(run, lambda r: r.step >= 3)
    actions.stop(run, "ada")
    world.to(run, "stopped")
    assert (run.reason, exits(run)) == ("stopped", ["stopped", "stopped"])
    assert world.supervisors() == []
    newest = actions.newest_checkpoint(run)
    assert newest is not None
    world.behave(steps=newest.step + 2, pace=0.01)
    actions.resume(run, "ada")
    world.to(run, "succeeded")
    assert run.attempt.number == 2
    assert run.step == newest.step + 2
    stored_equals_written(run)
