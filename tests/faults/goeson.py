"""A run that goes on after its end: resumed by a person, started again by itself, launched in spite of a fault."""

from __future__ import annotations

from tests.e2e.stack import until

from .case import Told, case
from .field import Field
from .service import send
from .stops import saving

GROUP = "going on"
SHORT = {"every_steps": 2, "keep": 2}


def resumed(field: Field, run: int, steps: int) -> Told:
    """Resume and wait for the end; every step's loss is there once."""
    field.stack.api("POST", f"/runs/{run}/resume")
    told = field.state(run, "succeeded")
    series = field.stack.api("GET", f"/runs/{run}/series/loss?points=1500")
    assert series["steps"] == [float(step) for step in range(1, steps + 1)], series["steps"]
    newest = told["attempts"][-1]
    seen = f"{field.site.run(run)}; attempt {newest['number']} from step {newest['resumed_from']}"
    return Told(run, f"{seen} on {newest['world_size']} ranks", "succeeded: completed")


def _stopped(field: Field, name: str, steps: int) -> int:
    run = field.training(name, steps=steps, checkpoints=SHORT)
    field.stack.api("POST", f"/runs/{run}/stop")
    field.state(run, "stopped")
    return run


@case(GROUP, "resumed with one node fewer; its shards are on a disk that only the drained node has (C4, C6)")
def one_node_fewer(field: Field) -> Told:
    run = _stopped(field, "one node fewer", 14)
    field.drain(field.hosts[1])
    field.undo.append(lambda: field.undrain(field.hosts[1]))
    told = resumed(field, run, 14)
    assert field.told(run)["attempts"][-1]["world_size"] == 1
    return told


@case(GROUP, "kill -9 of a rank in the middle of a save, then resumed (C7)")
def save_torn(field: Field) -> Told:
    run = field.training("torn", steps=16, at=3, checkpoints=SHORT)
    until("a save to begin", lambda: saving(field, run))
    field.rank(run, field.hosts[1]).kill()
    field.state(run, "failed")
    return resumed(field, run, 16)


@case(GROUP, "kill -9 of a rank; the recipe lets it start again once")
def restarts(field: Field) -> Told:
    limits = {"restarts": 1, "stop_seconds": 60}
    run = field.training("starts again", steps=14, at=4, checkpoints=SHORT, limits=limits)
    field.rank(run, field.hosts[1]).kill()
    seconds = field.noticed("it to be queued again", lambda: len(field.told(run)["attempts"]) == 2)
    seen = field.site.run(run)
    told = field.state(run, "succeeded")
    newest = told["attempts"][-1]
    assert newest["restart"] == 1
    assert newest["resumed_from"], "it had a checkpoint"
    return Told(run, seen, f"succeeded: from step {newest['resumed_from']}", seconds)


@case(GROUP, "kill -9 of the worker while it launches (N12)")
def worker_killed_launching(field: Field) -> Told:
    field.end_long()
    run = field.order("launched in spite of it", steps=4)
    until("the launch to be under way", lambda: field.told(run)["state"] in ("preparing", "starting"))
    field.stack.kill("worker")
    told = field.state(run, "succeeded")
    assert len(told["attempts"]) == 1
    return Told(run, field.site.run(run), "succeeded: completed")


@case(GROUP, "the same task delivered forty times while it launches (N11)")
def delivered_launching(field: Field) -> Told:
    field.end_long()
    run = field.order("launched once", steps=4)
    send(field, run)
    told = field.state(run, "succeeded")
    assert len(told["attempts"]) == 1
    starts = [move["new"] for move in told["history"]].count("starting")
    assert starts == 1
    return Told(run, field.site.run(run), "succeeded: completed")
