"""An export from its plan to its end: refused before anything is touched, let go, killed and taken up again."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.workers.test_exporting import drive, folder, holds, starts
from tests.workers.world import ROOT, Following, World, stored_equals_written
from training.spec.lint import Refused
from webapp.runs import actions, expected
from webapp.runs.models import Event, Export, Run, Stream
from webapp.runs.shelf import doom
from workers.export.exporting import Exporting
from workers.nodejob import advance as nodejob

EXPORTS = """#!/bin/sh
case "$2 $3" in "training export") exec {python} {exports} "$@" ;; esac
exec {before} "$@"
"""


@pytest.fixture
def trained(world: World, following: Following) -> Run:
    run = world.to(world.run(), "succeeded")
    before = world.folder / "python"
    before.rename(world.folder / "python-before")
    exports = ROOT / "tests" / "workers" / "exports.py"
    text = EXPORTS.format(python=sys.executable, exports=exports, before=world.folder / "python-before")
    before.write_text(text)
    before.chmod(0o755)
    world.behave()
    return run


def told(export: Export) -> list[str]:
    rows = Event.objects.filter(source=f"exportstate@{export.pk}").order_by("number")
    return [row.data.get("asked") or row.data["new"] for row in rows]


def partial(export: Export) -> Path:
    return folder(export) / "model.partial"


def test_one_that_is_killed_goes_on_in_its_folder(world: World, trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    after_a_rest(world, trained)
    monkeypatch.setattr(actions.begin, "FIRST_DELAY", timedelta(0))
    by_itself_twice(world, trained)
    then_by_hand(world, trained)
    discarded_it_leaves_nothing(world, trained)
    lost_with_its_checkpoint_it_leaves_nothing(world, trained)
    assert holds(world) == 0
    assert not world.supervisors()
    assert not Stream.objects.filter(closed_at=None).exists()
    stored_equals_written(trained)
    made_while_its_node_was_out_of_reach(world, trained)


def after_a_rest(world: World, trained: Run) -> None:
    export = actions.export(trained, world.user)
    Export.objects.filter(pk=export.pk).update(retried=1)
    nodejob.advance("export", export.pk)
    export.refresh_from_db()
    assert (export.state, export.due_at > timezone.now() + timedelta(seconds=5)) == ("queued", True)
    actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")


def by_itself_twice(world: World, trained: Run) -> None:
    world.behave(kills=2)
    export = drive(world, trained, actions.export(trained, world.user), "running")
    drive(world, trained, export, "queued", "failed")
    assert (export.state, export.start, holds(world)) == ("queued", 2, 2), "nothing rotates it away between two tries"
    drive(world, trained, export, "ready")
    assert (export.start, export.retried, export.bytes) == (3, 2, 3), "each start added a byte to what was there"
    assert holds(world) == 0
    assert told(export)[:5] == ["queued", "planning", "gathering", "running", "failed"]
    assert told(export).count("planning") == 1
    exits = Event.objects.filter(source=f"exportnode@{export.pk}", kind="exit").order_by("number")
    assert [(e.data.get("start", 1), e.data["reason"]) for e in exits] == [
        (1, "killed_by_host"), (2, "killed_by_host"), (3, "completed")
    ]  # fmt: skip
    assert expected.took(export) is None, "what was started again says nothing of a plan"
    assert not (folder(export) / "env").exists()


def then_by_hand(world: World, trained: Run) -> None:
    export = failed(world, trained)
    assert (export.reason, export.start) == ("killed_by_host", 1)
    assert actions.retry(export) is None, "it was tried often enough"
    assert (partial(export).exists(), export.kept) == (True, 1), "for it to go on from"
    actions.go_on(export, "ada")
    drive(world, trained, export, "ready")
    assert (export.start, export.retried, export.bytes) == (2, 0, 2)


def failed(world: World, trained: Run) -> Export:
    """Return one that left something to go on from, and was tried often enough."""
    world.behave(kills=1)
    export = actions.export(trained, world.user)
    Export.objects.filter(pk=export.pk).update(retried=actions.exports.RETRIES)
    return drive(world, trained, export, "failed")


def discarded_it_leaves_nothing(world: World, trained: Run) -> None:
    export = failed(world, trained)
    before = starts(world)
    actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")
    assert (partial(export).exists(), export.kept, starts(world)) == (False, 0, before)


def lost_with_its_checkpoint_it_leaves_nothing(world: World, trained: Run) -> None:
    """Training rotated it away before somebody said that it shall go on."""
    export = failed(world, trained)
    assert partial(export).exists()
    parts = [path for node in world.nodes for path in Path(node.scratch).rglob("checkpoint-4")]
    for path in parts:
        path.rename(path.with_name("away"))
    actions.go_on(export, "ada")
    drive(world, trained, export, "failed")
    assert (export.reason, partial(export).exists(), export.kept) == ("data", False, 0)
    for path in parts:
        path.with_name("away").rename(path)


def made_while_its_node_was_out_of_reach(world: World, trained: Run) -> None:
    world.behave()
    export = drive(world, trained, actions.export(trained, world.user), "ready")
    before = starts(world)
    streams = Stream.objects.filter(job_kind="export", job_id=export.pk)
    Event.objects.filter(source__in=streams.values("source")).delete()
    streams.update(offset=0, last_seq=0)
    Export.objects.filter(pk=export.pk).update(state="failed", reason="node_unreachable", files=[], bytes=0)
    actions.go_on(export, "ada")
    drive(world, trained, export, "ready")
    assert (export.bytes, starts(world)) == (1, before), "it is not made again"
    assert [path.name for path in (folder(export) / "model").iterdir()] == ["model.safetensors"]


def test_what_was_planned_is_started_refused_or_let_go(world: World, trained: Run) -> None:
    plan_is_compared(world, trained)
    no_room_is_told_before_anything_is_touched(world, trained)
    two_at_once_are_both_right(world, trained)
    cancelled_leaves_nothing(world, trained)


def plan_is_compared(world: World, trained: Run) -> None:
    planned = drive(world, trained, actions.plan(trained, world.user), "planned")
    assert (starts(world), holds(world), planned.made_dtype) == (0, 0, "bfloat16")
    assert planned.foretold
    assert planned.foretold.reading.brought > 0, "the other node's shard is not here yet"
    assert not folder(planned).exists(), "a plan writes nothing"
    Export.objects.update(planned_at=timezone.now() - timedelta(hours=1))
    drive(world, trained, planned, "cancelled")
    assert planned.reason_text == "planned, and not started"
    another = drive(world, trained, actions.plan(trained, world.user, dtype="float32"), "planned")
    started = drive(world, trained, actions.plan(trained, world.user), "planned")
    drive(world, trained, another, "cancelled")
    assert another.reason_text == "planned, and not started"
    assert told(another) == ["queued", "planning", "planned", "cancelled"], "nobody has asked for its end"
    assert not any("tried again" in loss for loss in doom.doom(trained, [another.checkpoint]).losses)
    actions.start(started, "ada")
    drive(world, trained, started, "ready")
    assert (started.pk != planned.pk, started.expected_seconds) == (True, 40)
    assert [row.name for row in expected.held(started)] == ["bytes of weights", "time"]


def no_room_is_told_before_anything_is_touched(world: World, trained: Run) -> None:
    before = starts(world)
    problem = {"field": "out", "why": "9 bytes are needed and 1 is free", "fix": "Free space.", "reason": "disk_full"}
    world.behave(plan={"problems": [problem]})
    export = drive(world, trained, actions.export(trained, world.user), "failed")
    assert (export.reason, export.reason_text) == ("disk_full", "out: 9 bytes are needed and 1 is free. Free space.")
    assert (starts(world), holds(world), folder(export).exists()) == (before, 0, False)
    assert export.planned_at
    assert [found["why"] for found in export.plan["problems"]] == [problem["why"]], "the page and the API have it, too"
    waiting = drive(world, trained, actions.plan(trained, world.user, dtype="float32"), "planned")
    with pytest.raises(Refused, match="1 is free"):
        actions.start(waiting, "ada")
    actions.cancel(waiting, "ada")
    world.behave()
    actions.go_on(export, "ada")
    drive(world, trained, export, "ready")
    assert (export.start, told(export).count("planning")) == (1, 2)


def two_at_once_are_both_right(world: World, trained: Run) -> None:
    one, other = (actions.export(trained, world.user, dtype=dtype) for dtype in ("bfloat16", "float32"))
    drive(world, trained, one, "running", "ready")
    drive(world, trained, other, "ready")
    drive(world, trained, one, "ready")
    assert one.files == other.files
    assert folder(one) != folder(other)


def cancelled_leaves_nothing(world: World, trained: Run) -> None:
    world.behave(waits=True)
    export = drive(world, trained, actions.export(trained, world.user), "running")
    world.drive(trained, lambda _: partial(export).exists(), step=lambda: None)
    grace, Exporting.grace = Exporting.grace, timedelta(0)
    try:
        actions.cancel(export, "ada")
        drive(world, trained, export, "cancelled")
    finally:
        Exporting.grace = grace
    assert not partial(export).exists()
    assert holds(world) == 0
    assert not world.supervisors()
