"""The batch that an open page takes: built from the journal alone, by its number."""

from __future__ import annotations

import json
import math

from tests.webapp.rows import World
from webapp.runs import actions
from webapp.runs.live import batch
from webapp.runs.models import Event


def test_it_works(world: World) -> None:
    feed = world.running()
    before = Event.objects.filter(run=feed.run).count()
    feed.metrics(2.5, math.nan)
    feed.write("log@1", ("log", None, {"text": "\x1b[1mhello\x1b[0m\n"}))
    found = batch(feed.run.pk, before)
    assert found["points"].pop("at") == [[1.0, 1700000001.0], [2.0, 1700000002.0]]
    assert found["points"] == {"loss": [[1.0, 2.5], [2.0, "NaN"]]}
    assert found["log"] == [{"number": before + 3, "attempt": 1, "node": 1, "text": "hello"}]
    assert (found["cursor"], found["more"], found["step"]) == (before + 3, False, 2)
    assert found["changed"] == ["progress"]
    json.dumps(found, allow_nan=False)


def test_pieces_together_are_the_whole(world: World) -> None:
    feed = world.running()
    feed.metrics(*(float(i) for i in range(23)))
    cursor, pieces, more = 0, [], True
    while more:
        found = batch(feed.run.pk, cursor, limit=5)
        cursor, more = found["cursor"], found["more"]
        pieces += found["points"].get("loss", [])
    assert pieces == batch(feed.run.pk, 0)["points"]["loss"]
    assert len(pieces) == 23
    assert batch(feed.run.pk, cursor) == {
        "cursor": cursor, "more": False, "points": {}, "log": [], "changed": [], "step": None
    }  # fmt: skip


def test_every_change_of_state_asks_for_header_and_buttons(world: World) -> None:
    feed = world.running()
    assert {"header", "actions", "history", "charts"} <= set(batch(feed.run.pk, 0)["changed"])


def test_how_a_stop_goes_on_is_drawn_while_it_does(world: World) -> None:
    run = world.running().run
    actions.stop(run, "ada")
    start = batch(run.pk, 0)["cursor"]
    actions.told(run.attempt, [0, 1])
    assert batch(run.pk, start)["changed"] == ["ending"]
    assert run.attempt.placements.filter(stop_told_at=None).count() == 0
    told = batch(run.pk, start)["cursor"]
    actions.told(run.attempt, [0, 1])
    assert batch(run.pk, told)["changed"] == [], "said once"
    actions.stop(run, "ada", "now")
    assert "ending" in batch(run.pk, told)["changed"]


def test_samples_are_points_over_time(world: World) -> None:
    feed = world.running()
    gpu = {"index": 3, "used": 7.0, "total": 8.0, "load": 0.5}
    feed.write("node@1", ("sample", None, {"ram_used": 5.0, "gpus": [gpu]}))
    found = batch(feed.run.pk, 0)
    assert {name: [y for _, y in pairs] for name, pairs in found["points"].items()} == {
        "node1/ram_used": [5.0], "node1/gpu3/used": [7.0], "node1/gpu3/total": [8.0], "node1/gpu3/load": [0.5]
    }  # fmt: skip
    assert "memory" in found["changed"]
