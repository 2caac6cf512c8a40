"""What can't be ended is named and looked after: it holds up neither its run's end nor the next ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.workers.test_queue import asks
from tests.workers.world import World
from training.spec.faults import Reason
from webapp import dispatch
from webapp.fleet.models import Node
from webapp.runs import actions, lifecycle
from webapp.runs.models import Attempt, Placement, Run
from webapp.runs.states import RunState
from workers import advance, sweep
from workers.end import finish, outcome
from workers.end.settle import Settled

NODE = """#!/bin/sh
case "$3" in
status) echo '{"state": "STATE", "exit": null, "processes": PROCESSES}' ;;
*) echo '{"processes": PROCESSES}' ;;
esac
"""


def nodes_say(world: World, state: str, processes: list[int]) -> None:
    """Have every node answer the same, whatever it is told."""
    words = NODE.replace("STATE", state).replace("PROCESSES", str(processes))
    (world.folder / "python").write_text(words)


def prepared(world: World, nodes: list[Node], state: RunState) -> Run:
    """Return a run of which something may run on `nodes`."""
    run = asks(world, len(nodes), None)
    assert run.attempt is not None
    actions.place(run.attempt, nodes)
    Placement.objects.filter(attempt=run.attempt).update(prepared_at=timezone.now())
    Run.objects.filter(pk=run.pk).update(state=state)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("state", ["lost", "running"])  # with the supervisor, or without it
def test_a_process_that_outlives_kill_does_not_hold_up_the_end(world: World, state: str) -> None:
    nodes_say(world, state, [7])
    run = prepared(world, world.nodes[:1], RunState.STOPPING)
    attempt, now = run.attempt, timezone.now()
    assert finish.conclude(run, attempt, outcome.of_stopped, now) == finish.SOON
    run.refresh_from_db()
    assert run.state == "stopping"
    assert finish.conclude(run, attempt, outcome.of_stopped, now - finish.PATIENCE) is None
    run.refresh_from_db()
    assert (run.state, run.reason) == ("stopped", "stopped_unsaved")
    assert "Not proven empty: node n0: 1 process is left" in run.reason_text
    assert list(finish.unproven()) == [attempt]


def test_a_failed_launch_names_the_node_on_which_something_lives(world: World) -> None:
    nodes_say(world, "running", [])
    run = prepared(world, world.nodes[:1], RunState.STARTING)
    finish.fail(run, run.attempt, Reason.LAUNCH, "no start")
    run.refresh_from_db()
    assert run.reason_text == "no start. Not proven empty: node n0: its supervisor is still at work"


def test_what_is_left_is_told_for_each_node() -> None:
    found = {0: {"state": "ended", "processes": [7, 8]}, 1: {"state": "ended", "processes": []}}
    settled = Settled({0: "a", 1: "b"}, found, gone={1})
    assert settled.doubts() == ["node a: 2 processes are left"]


def test_a_lost_node_that_is_back_is_cleared_while_its_run_trains_elsewhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes_say(world, "absent", [])
    run = prepared(world, world.nodes[:1], RunState.RUNNING)
    old = run.attempt
    lifecycle.move(run, RunState.FAILED, actor="t", cause="t", attempt=old, reason=Reason.NODE_LOST)
    Attempt.objects.create(run=run, number=2, due_at=timezone.now() + timedelta(hours=1))
    lifecycle.move(run, RunState.QUEUED, actor="t", cause="t")
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(dispatch, "send", lambda *words: sent.append(words))
    Attempt.objects.filter(pk=old.pk).update(due_at=timezone.now())
    sweep.sweep()
    assert (dispatch.CLEAR_ATTEMPT, old.pk) in sent
    advance.clear(old.pk)
    assert not finish.unproven().exists()
    run.refresh_from_db()
    assert (run.state, run.attempt.number) == ("queued", 2)


def test_a_launch_asks_no_node_but_its_own_of_what_earlier_runs_left(world: World) -> None:
    nodes_say(world, "absent", [])
    run = prepared(world, world.nodes, RunState.RUNNING)
    lifecycle.move(run, RunState.FAILED, actor="t", cause="t")
    mine = [world.nodes[0].pk]
    assert list(finish.unproven(mine)) == [run.attempt]
    finish.clear(run.attempt, mine)
    assert world.hosts[1].commands == []
    assert list(finish.unproven(mine)) == []
    assert list(finish.unproven()) == [run.attempt]
