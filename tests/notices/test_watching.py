"""The watch on rows: what nodes write becomes notices, once, and they end."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.webapp.rows import World
from training.spec.faults import Reason
from webapp import dispatch, notices
from webapp.notices.models import Notice, Watch
from webapp.notices.tails import read
from webapp.runs.live import batch
from webapp.runs.models import Checkpoint, Event, Placement, Run
from webapp.runs.states import RunState
from workers.notices import watching

from .conftest import Watched, moment

pytestmark = pytest.mark.django_db


def test_it_works(watched: Watched, page: Client) -> None:
    """A NaN in the loss: noticed once, shown on the page and in the list, told to open pages, over in the end."""
    run = watched.feed.run
    address = f"/runs/{run.pk}/part/notices"
    assert "begins within seconds" in page.get(address).content.decode()
    last = watched.steady()
    assert watched.look() == []
    assert "sees nothing wrong" in page.get(address).content.decode()
    cursor = Run.objects.get().journal
    watched.feed.metrics(math.nan, 2.0, after=last)
    assert watched.look() == watched.look() == ["non_finite loss"]
    found = Notice.objects.get()
    assert (found.figure, found.began_at) == ("NaN", moment(last + 2))  # the line `started` came before
    told = batch(run.pk, cursor)
    assert "notices" in told["changed"]
    for shown in (page.get(address), page.get(f"/runs/{run.pk}/")):
        text = shown.content.decode()
        assert "The loss is NaN at step 41." in text
        assert "Lower the learning rate" in text
    assert 'data-kind="non_finite"' in page.get("/runs/").content.decode()
    (told,) = page.get(f"/api/v1/runs/{run.pk}/notices?open=true").json()["items"]
    assert (told["kind"], told["key"], told["figure"], told["attempt"]) == ("non_finite", "loss", "NaN", 1)
    watched.feed.metrics(*[2.0] * 130, after=last + 2)
    assert watched.look() == []
    assert page.get(f"/api/v1/runs/{run.pk}/notices?open=true").json()["items"] == []
    assert page.get(f"/api/v1/runs/{run.pk}/notices").json()["items"][0]["ended_at"] is not None
    assert "1 past notice<" in page.get(address).content.decode()
    assert "notice-mark" not in page.get("/runs/").content.decode()


def test_a_run_with_an_open_notice_is_above_others_in_the_list(watched: Watched, world: World, page: Client) -> None:
    watched.steady()
    other = world.running("another").run

    def rows() -> list[str]:
        return re.findall(r'data-run="(\d+)"', page.get("/runs/").content.decode())

    newest_first = [str(other.pk), str(watched.feed.run.pk)]
    assert rows() == newest_first
    watched.feed.metrics(math.nan, math.nan, after=40)
    watched.look()
    assert rows() == newest_first[::-1]
    assert page.get("/runs/").content.decode().count(">needs you<") == 1
    watched.feed.metrics(*[2.0] * 130, after=42)
    watched.look()
    assert rows() == newest_first


def test_a_spike_in_what_came_between_two_looks(watched: Watched) -> None:
    last = watched.steady()
    watched.look()
    watched.feed.metrics(2.0, 40.0, 2.0, after=last)
    assert watched.look() == ["spike loss"]
    assert "rose to 40 at step 42" in Notice.objects.get().text


def test_what_was_folded_between_two_looks_is_seen(watched: Watched) -> None:
    last = watched.steady()
    watched.look()
    watched.feed.metrics(2.0, math.nan, *[2.0] * 148, after=last)
    assert not Event.objects.filter(kind="metrics", step=last + 2).exists(), "so many at once are folded as they come"
    assert watched.look() == ["non_finite loss"]
    assert "at step 42" in Notice.objects.get().text
    watch = Watch.objects.select_related("attempt__run").get()
    lines = read(watch.attempt, 0, watch.cursor).lines
    assert [line.step for line in lines] == list(range(1, last + 151)), "each once, in order"


def test_a_look_delivered_twice_or_killed_changes_nothing(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.steady()
    watched.look()
    watched.feed.metrics(math.nan, after=40)
    due = watched.now + timedelta(seconds=15)
    first, second = (Watch.objects.select_related("attempt__run").get() for _ in range(2))

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(watching, "_tell", killed)
        with pytest.raises(KeyboardInterrupt):
            watching.look(first, due)
    assert Notice.objects.count() == 0
    first.refresh_from_db()
    watching.look(first, due)
    watching.look(second, due)  # began before the other had written
    watching.watch_runs(watched.now)  # not due yet
    assert Notice.objects.count() == 1
    assert Run.objects.get().events.filter(kind="notice").count() == 1


def test_no_step_while_samples_come(watched: Watched) -> None:
    watched.steady()
    hang = watched.feed.run.parsed_recipe().limits.hang_seconds
    for seconds, found in ((hang - 60, []), (120, ["no_progress step"])):
        watched.samples()
        assert watched.look(seconds) == found
    watched.steady(1, after=40)
    Event.objects.filter(kind="metrics").update(received_at=watched.now)  # by the clock that the test turns
    watched.samples()
    assert watched.look() == []


def test_a_save_may_take_longer(watched: Watched) -> None:
    watched.steady()
    hang = watched.feed.run.parsed_recipe().limits.hang_seconds
    watched.feed.write("train@0", ("phase", 40, {"name": "saving"}))
    for seconds, found in ((2 * hang, []), (4 * hang + 60, ["no_progress step"])):
        watched.samples()
        assert watched.look(seconds) == found


def test_of_a_node_that_is_away_silence_says_nothing(watched: Watched) -> None:
    watched.steady()
    watched.look()
    assert watched.look(5000) == [], "no sample either"
    Placement.objects.filter(rank=1).update(unreachable_since=watched.now)
    watched.samples()
    assert watched.look(5000) == []


def test_an_idle_gpu_after_five_minutes(watched: Watched) -> None:
    watched.steady()
    for minute in range(6):
        opened = [watched.look() for _ in range(4) if watched.samples(load=0.01, temperature=50) is None]
        assert opened[-1] == (["gpu_idle alpha GPU 0"] if minute == 5 else [])
    found = Notice.objects.get()
    assert (found.began_at, found.figure) == (moment(1), "1% busy")
    for _ in range(3):
        watched.samples(load=0.95)
        opened = [watched.look()]
    assert opened == [[]]


def test_a_disk_that_is_nearly_full_and_one_that_will_be(watched: Watched) -> None:
    watched.feed.checkpoint(2)
    watched.samples(free=30e9, rank=1)
    assert watched.look() == ["disk beta"]
    Checkpoint.objects.update(created_at=watched.now)
    Checkpoint.objects.get().parts.update(bytes=400e9)
    watched.samples(free=500e9, rank=1)
    watched.samples(free=500e9)
    assert watched.look(400) == ["disk beta", "disk checkpoints"]
    assert "full after step 12" in Notice.objects.get(key="checkpoints").text


def test_notices_end_with_their_run(watched: Watched) -> None:
    watched.feed.metrics(math.nan)
    watched.look()
    watched.feed.end(RunState.FAILED, reason=Reason.NON_FINITE)
    found = Notice.objects.get()
    assert (found.ended_at is not None, found.with_run) == (True, True)
    assert watched.look() == []


def test_of_many_past_notices_the_page_shows_the_newest_and_says_so(watched: Watched, page: Client) -> None:
    run = watched.feed.run
    seen = {"run": run, "attempt": run.attempt, "kind": "heat", "began_at": watched.now, "last_seen_at": watched.now}
    Notice.objects.bulk_create(Notice(key=f"alpha GPU {i}", ended_at=watched.now, **seen) for i in range(21))
    text = page.get(f"/runs/{run.pk}/part/notices").content.decode()
    assert "The newest 20 past notices<" in text
    assert text.count('data-testid="past-notice"') == 20


def test_a_look_that_comes_after_the_end_opens_nothing(watched: Watched) -> None:
    watched.look()
    watch = Watch.objects.select_related("attempt__run").get()
    watched.feed.metrics(math.nan)
    watched.feed.end(RunState.FAILED, reason=Reason.NON_FINITE)
    watch.attempt.run.refresh_from_db()
    watching.look(watch, watched.now)
    assert Notice.objects.count() == 0


def test_the_sweep_sends_one_message_for_all(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(dispatch, "send", lambda *message: sent.append(message))
    for _ in range(2):
        watching.sweep(watched.now + timedelta(seconds=1))
    assert sent == [(dispatch.WATCH_RUNS,)] * 2
    assert Watch.objects.count() == 1
    watching.watch_runs(watched.now + timedelta(seconds=1))
    sent.clear()
    watching.sweep(watched.now + timedelta(seconds=2))
    assert sent == []


def test_open_notices_of_many_runs_are_one_query(
    watched: Watched, django_assert_num_queries: Any
) -> None:  # fmt: skip
    watched.feed.metrics(math.nan)
    watched.look()
    runs = list(Run.objects.all())
    with django_assert_num_queries(1):
        found = notices.open_of(runs)
    assert [notice.kind for notice in found[watched.feed.run.pk]] == ["non_finite"]
