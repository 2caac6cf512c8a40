"""Lines on nodes become rows: at once, once, whatever breaks in between."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection
from django.utils import timezone

from tests.workers.world import GENEROUS, Following, World
from training.journal import Journal
from training.spec.events import Event as Line
from webapp.fleet.models import Node
from webapp.runs import journal, lifecycle, live
from webapp.runs.models import Event, Placement, Run, Stream
from webapp.runs.states import RunState
from workers import group
from workers.follow import ingest, keeper, link, streams
from workers.follow.reader import reader_of


@pytest.fixture
def running(world: World) -> Run:
    """A run that is running, without anything on the nodes: the test writes the lines."""
    run = world.drive(world.run(), lambda r: r.state == "preparing")
    lifecycle.move(run, RunState.STARTING, actor="t", cause="t")
    lifecycle.move(run, RunState.RUNNING, actor="t", cause="t")
    streams.open_for_attempt(run.attempt, group.of_attempt(run.attempt))
    for stream in Stream.objects.all():
        Path(stream.path).parent.mkdir(parents=True, exist_ok=True)
    return run


def stream(source: str) -> Stream:
    return Stream.objects.select_related("attempt").get(source=source)


def wait(condition: Any) -> None:
    limit = time.monotonic() + GENEROUS
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def count(source: str) -> int:
    return Event.objects.filter(source=source).count()


def write(source: str, number: int, first: int = 1) -> None:
    lines = Journal(stream(source).path)
    for step in range(first, first + number):
        lines.emit("metrics", step=step, loss=1.0)


def test_lines_of_all_nodes_arrive(running: Run, following: Following) -> None:
    write("train@0", 50)
    write("node@1", 5)
    Path(stream("log@0").path).write_bytes(b"one\n10%\r20%\nthr")
    wait(lambda: (count("train@0"), count("node@1"), count("log@0")) == (50, 5, 2))
    with Path(stream("log@0").path).open("ab") as log:
        log.write(b"ee\n")
    wait(lambda: count("log@0") == 3)
    rows = Event.objects.filter(source="log@0").order_by("number")
    assert [row.data["text"] for row in rows] == ["one", "20%", "three"]
    assert [row.seq for row in rows] == [4, 12, 18]


def test_reading_again_from_the_start_changes_nothing(running: Run, following: Following) -> None:
    write("train@0", 20)
    wait(lambda: count("train@0") == 20)
    before = Run.objects.get(pk=running.pk).journal
    again = stream("train@0")
    batch = reader_of("train@0", 0).feed(Path(again.path).read_bytes())
    assert journal.record(again, batch.lines, batch.offset) == 0
    assert (count("train@0"), Run.objects.get(pk=running.pk).journal) == (20, before)


def test_two_followers_store_every_line_once(running: Run, following: Following) -> None:
    with Following():
        for first in range(1, 101, 10):
            write("train@0", 10, first)
            time.sleep(0.02)
        wait(lambda: stream("train@0").offset == Path(stream("train@0").path).stat().st_size)
    assert count("train@0") == 100
    seqs = Event.objects.filter(source="train@0").order_by("number").values_list("seq", flat=True)
    assert list(seqs) == list(range(1, 101))


def test_a_broken_line_becomes_a_warning_and_the_next_are_read(running: Run, following: Following) -> None:
    path = Path(stream("train@0").path)
    write("train@0", 1)
    with path.open("ab") as file:
        file.write(b"Traceback: not for here\n")
    with path.open("ab") as file:
        file.write(b'{"seq":2,"at":1.0,"kind":"metrics","step":2,"data":{"loss":"\\u0000\\ud800"}}\n')
        file.write(b'{"seq":3,"at":1.0,"kind":"exit","data":{"reason":"no such"}}\n')
        file.write(b'{"seq":4,"at":1.0,"kind":"checkpoint","step":3,"data":{}}\n')
        file.write(b'{"seq":5,"at":1.0,"kind":"sample","data":{"gpus":[{"used":1}]}}\n')
        file.write(b'{"seq":6,"at":1.0,"kind":"metrics","step":3,"data":{"loss":0.5}}\n')
    wait(lambda: count("train@0") == 6)
    warning = Event.objects.get(source="bad:train@0")
    assert (warning.kind, "Traceback" in warning.data["line"]) == ("warning", True)
    flagged = Event.objects.filter(data__has_key="problem").values_list("seq", flat=True)
    assert sorted(flagged) == [3, 4, 5]
    assert not Placement.objects.filter(exit__isnull=False).exists()


def test_a_cut_link_is_made_again_and_nothing_is_lost(running: Run, following: Following, world: World) -> None:
    write("train@0", 10)
    wait(lambda: count("train@0") == 10)
    world.hosts[0].cut()
    write("train@0", 10, 11)
    wait(lambda: count("train@0") == 20)
    assert list(Event.objects.filter(source="train@0").values_list("seq", flat=True)) == list(range(1, 21))


def test_a_node_that_is_away_is_shown_so_until_it_is_back(
    running: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "GONE_SECONDS", 0.3)
    with Following():
        write("train@0", 1)
        wait(lambda: count("train@0") == 1)
        world.hosts[0].stop()
        wait(lambda: Placement.objects.get(rank=0).unreachable_since is not None)
        assert Placement.objects.get(rank=1).unreachable_since is None
        assert Run.objects.get(pk=running.pk).state == "running"
        world.hosts[0].start()
        write("train@0", 1, 2)
        wait(lambda: Placement.objects.get(rank=0).unreachable_since is None and count("train@0") == 2)
    told = Event.objects.filter(source="service:reach").order_by("number").values_list("data", flat=True)
    assert list(told) == [{"node": "n0", "rank": 0, "reachable": yes} for yes in (False, True)]
    assert live.batch(running.pk, 0)["changed"].count("header") == 1


def test_a_busy_database_loses_nothing(running: Run, following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "DATABASE_PAUSE", 0.05)
    real, left = keeper.store_all, iter(range(3))

    def busy(*args: Any) -> None:
        if next(left, None) is not None:
            raise OperationalError("database is locked")
        real(*args)

    monkeypatch.setattr(keeper, "store_all", busy)
    write("train@0", 5)
    wait(lambda: count("train@0") == 5)


def test_lines_that_no_row_takes_become_a_warning_each(running: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = journal.record

    def picky(held: Stream, lines: Sequence[Line], offset: int, bad: Sequence[journal.Bad] = ()) -> int:
        if any(line.seq % 2 == 0 for line in lines):
            raise DataError("a number is out of range")
        return real(held, lines, offset, bad)

    monkeypatch.setattr(journal, "record", picky)
    write("train@0", 4)
    held = stream("train@0")
    ingest.store(held, reader_of("train@0", 0).feed(Path(held.path).read_bytes() + b"no event\n"))
    assert (count("train@0"), count("bad:train@0")) == (2, 3)
    assert held.offset == Path(held.path).stat().st_size + len(b"no event\n")


def test_a_closed_stream_is_followed_no_more(running: Run, world: World) -> None:
    assert len(streams.followed()) == 6
    Stream.objects.update(closed_at=timezone.now())
    assert streams.followed() == {}


def test_open_streams_are_found_by_their_index(db: None) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:  # it reads a table of a few rows whole, whatever indexes there are
            cursor.execute("SET LOCAL enable_seqscan = off")
    plan = Stream.objects.filter(closed_at=None).explain()
    assert "stream_open" in plan


def test_a_node_whose_interpreter_fails_is_shown_with_its_reason(
    running: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "GONE_SECONDS", 0.3)
    monkeypatch.setattr(link, "PAUSES", (0.1,))
    broken = world.folder / "broken"
    broken.write_text("#!/bin/sh\necho no module >&2; exit 9\n")
    broken.chmod(0o755)
    Node.objects.filter(name="n1").update(python=str(broken))
    with Following():
        write("train@0", 1)
        wait(lambda: count("service:warning") and count("train@0"))
        tries = [command for command in world.hosts[1].commands if "training follow" in command]
        wait(lambda: len([c for c in world.hosts[1].commands if "training follow" in c]) > len(tries) + 2)
        assert (count("service:warning"), count("train@0")) == (1, 1), "told once, however often it fails"
        assert Placement.objects.get(rank=1).unreachable_since is not None
    assert Placement.objects.get(rank=0).unreachable_since is None
    (told,) = Event.objects.filter(source="service:warning").values_list("data", flat=True)
    assert "n1" in told["text"]
    assert "no module" in told["text"]
