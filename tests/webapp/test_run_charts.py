"""What the charts of a run page are made of, and its progress."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from training.spec.faults import Reason
from webapp.runs import charts, levels
from webapp.runs.models import Event, Series
from webapp.runs.packing import Column
from webapp.runs.states import RunState

from .rows import World


def test_a_picture_of_named_series_has_those_alone(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(3.0, 2.0)
    feed.write("node@0", ("sample", None, {"cpu": 0.5, "ram_used": 5}))
    address = f"/runs/{feed.run.pk}/series.json"
    assert {"loss", "node0/ram_used"} < page.get(address).json()["series"].keys()
    assert page.get(f"{address}?name=node0/cpu&name=loss&name=no%00").json()["series"].keys() == {"node0/cpu", "loss"}


def test_a_window_of_a_series_comes_with_the_points_just_outside(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(5.0, 4.0, math.nan, 2.0, 1.0, 0.5)
    address = f"/runs/{feed.run.pk}/series.json?name=loss&name=at"
    found = page.get(f"{address}&from=2.5&to=4").json()["series"]
    assert found["loss"]["points"] == [[2, 4.0], [3, "NaN"], [4, 2.0], [5, 1.0]]
    assert [x for x, _ in found["at"]["points"]] == [2, 3, 4, 5]
    for wrong in ("from=x", "to=nan", "from=3&to=2", "points=9"):
        answer = page.get(f"{address}&{wrong}")
        assert (answer.status_code, wrong[: wrong.index("=")] in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("window", ["", "from=1&to=60", "from=20.5&to=30.5", "from=-9&to=99"])
def test_many_series_take_as_many_questions_as_one(page: Client, world: World, window: str) -> None:
    feed = world.running()
    names = [f"metric{i}" for i in range(12)]
    feed.write("train@0", *(("metrics", step, dict.fromkeys(names, step / 2)) for step in range(1, 61)))
    held = Series.objects.filter(attempt=feed.run.attempt, name__in=names)
    levels.add({row.pk: Column.of((step, step / 2) for step in range(1, 50)) for row in held})
    Event.objects.filter(step__lt=50).delete()
    asked = []
    for some in (names[:1], names):
        with CaptureQueriesContext(connection) as queries:
            found = page.get(f"/runs/{feed.run.pk}/series.json?{window}&name={'&name='.join(some)}").json()["series"]
        assert found.keys() == set(some)
        assert {len(series["points"]) for series in found.values()} == {12 if "." in window else 60}
        asked.append(len(queries))
    assert asked[0] == asked[1] <= 12


def test_curves_of_many_hosts_share_their_points(page: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "SHARED", 40)
    monkeypatch.setattr(charts, "FEWEST", 10)
    feed = world.running()
    feed.metrics(*(float(n % 7) for n in range(60)))
    feed.write("node@0", *(("sample", None, {"ram_used": n % 5, "ram_total": 9}) for n in range(60)))
    found = page.get(f"/runs/{feed.run.pk}/series.json?points=100").json()["series"]
    assert len(found["loss"]["points"]) == 60
    assert len(found["node0/ram_used"]["points"]) <= 20
    assert found["node0/ram_used"]["points"][-1][1] == 4


def test_marks_tell_checkpoints_restarts_and_ends(page: Client, world: World) -> None:
    feed = world.running()
    feed.metrics(5.0, 4.0, 3.0, 2.0)
    saved = feed.checkpoint(2)
    feed.end(RunState.FAILED, reason=Reason.RANK_FAILED)
    page.post(f"/runs/{feed.run.pk}/resume", {"checkpoint": saved.pk})
    marks = page.get(f"/runs/{feed.run.pk}/marks.json").json()["marks"]
    assert [(mark["kind"], mark["x"]) for mark in marks] == [("checkpoint", 2), ("resume", 2), ("failed", 4)]
    assert marks[1]["text"] == "resumed from step 2, attempt 2"


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")  # the test's client does
def test_a_chart_comes_as_csv_with_all_attempts(page: Client, world: World) -> None:
    feed = world.running("R&D: <run>")
    feed.metrics(1.5, math.nan, math.inf)
    saved = feed.checkpoint(1)
    feed.end(RunState.FAILED, reason=Reason.RANK_FAILED)
    page.post(f"/runs/{feed.run.pk}/resume", {"checkpoint": saved.pk})
    feed.run.refresh_from_db()
    world.started(feed.run).metrics(1.25, after=1)
    answer = page.get(f"/runs/{feed.run.pk}/series.csv?name=loss&name=nothing%00")
    lines = b"".join(answer).decode().splitlines()  # type: ignore[call-overload]
    first = ["loss,1,step,1.0,1.5", "loss,1,step,2.0,NaN", "loss,1,step,3.0,Infinity"]
    assert lines == ["series,attempt,axis,x,value", *first, "loss,2,step,2.0,1.25"]
    assert answer["Content-Disposition"] == f'attachment; filename="rd-run-{feed.run.pk}.csv"'
    assert answer["X-Accel-Buffering"] == "no"


def test_progress_tells_tokens_and_cost_where_a_node_has_a_price(page: Client, world: World) -> None:
    feed = world.running()
    address = f"/runs/{feed.run.pk}/part/header"
    feed.started(10)
    feed.write("train@0", ("metrics", 4, {"loss": 2.0, "num_tokens": 1_234_567.0}))
    assert "1.23 M tokens seen" in page.get(address).content.decode()
    attempt = feed.run.attempt
    began = timezone.now() - timedelta(hours=3)
    attempt.placements.update(prepared_at=began)
    type(attempt).objects.filter(pk=attempt.pk).update(started_at=began + timedelta(hours=1))  # 4 of 10 steps in 2 h
    assert 'data-testid="cost"' not in page.get(address).content.decode()
    world.nodes[0].gpu_hour_price = 2.0
    world.nodes[0].save()
    assert "6.00 $ so far, about 12.00 $ in all, without beta" in page.get(address).content.decode()
    world.nodes[1].gpu_hour_price = 0.5
    world.nodes[1].save()
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert "7.50 $ in all</div>" in page.get(address).content.decode()
