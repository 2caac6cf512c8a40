"""Samples fold into blocks and chunks, and nothing that reads them can tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.test_journal import attempt, line, stream  # noqa: F401
from webapp.runs import charts, folding, glances, journal, live, series
from webapp.runs.folding import BLOCK, fold
from webapp.runs.models import Attempt, Chunk, Event, Run, SampleBlock, Stream
from webapp.runs.packing import pack_points, pack_samples, unpack_points, unpack_samples
from webapp.runs.page import memory
from webapp.runs.replay import replayed, written
from webapp.runs.windows import Window

pytestmark = pytest.mark.django_db


def sample(seq: int, *, broken: bool = False) -> Any:
    gpus = [{"index": 0, "used": seq, "total": 99, "load": "NaN" if seq == 7 else None if seq == 8 else 0.5}]
    return line(seq, "sample", 6 if seq == 6 else None, ram_used=1000 + seq, gpus=3 if broken else gpus, text="x")


def fill(attempt: Attempt, count: int) -> Stream:  # noqa: F811
    """Write samples and, in turns of ten, as many steps' metrics; sample number 3 breaks its promise."""
    held = stream(attempt, "node@0")
    for first in range(1, count + 1, 10):
        lines = [sample(seq, broken=seq == 3) for seq in range(first, min(first + 10, count + 1))]
        journal.record(held, lines, first * 100)
        steps = [line(seq, "metrics", seq, loss="NaN" if seq == 9 else 1 / seq) for seq in range(first, first + 10)]
        journal.record(stream(attempt), steps, first)
    return held


def seen(run: Run) -> dict[str, Any]:
    """Return all that reads samples, in every way they are read."""
    pieces, cursor, more = list[Any](), 0, True
    while more:
        batch = live.batch(run.pk, cursor, limit=47)
        cursor, more = batch["cursor"], batch["more"]
        pieces.append(batch)
    return {
        "batches": pieces,
        "picture": charts.picture(run, Window(points=1000)),
        "thinned": series.read(run, "node0/ram_used", 20),
        "load": series.read(run, "node0/gpu0/load"),
        "loss": series.read(run, "loss"),
        "at": series.read(run, "at", 1500, 20.0, 70.0),
        "ends": series.ends(run, "loss"),
        "last": series.last_values(run),
        "names": series.names(run),
        "memory": [(node.bars, node.sample.seq) for node in memory(run)["nodes"]],
        "events": [
            (e.number, e.source, e.seq, e.at, e.received_at, e.step, e.data) for e in replayed(run.pk, 0, 10_000)
        ],
    }


def test_what_was_folded_reads_as_before(attempt: Attempt) -> None:  # noqa: F811
    held = fill(attempt, 3 * BLOCK + 5)
    before = seen(attempt.run)
    assert (fold(held), fold(held)) == (2, 0)
    assert seen(attempt.run) == before
    assert (fold(stream(attempt)), fold(stream(attempt))) == (2, 0)
    assert seen(attempt.run) == before
    kinds = Event.objects.exclude(kind="state").order_by("kind").values_list("kind").annotate(Count("pk"))
    assert dict(kinds) == {"metrics": BLOCK + 10, "sample": BLOCK + 5}
    assert {block.count for block in SampleBlock.objects.all()} == {BLOCK}
    told = [(event.seq, event.step) for event in written(attempt, "train@0", ["metrics"])]
    assert told == [(seq, seq) for seq in range(1, 3 * BLOCK + 11)]
    assert glances.at_steps({(attempt.pk, 2), (attempt.pk, 185)}, ["loss"]) == {
        (attempt.pk, "loss", 2): 1 / 2, (attempt.pk, "loss", 185): 1 / 185,
    }  # fmt: skip
    load = before["load"]
    assert (load.values[5], len(load.values)) == ("NaN", 3 * BLOCK + 3), "not of the broken one, nor where it was null"
    numbers = [number for number, *_ in before["events"]]
    assert numbers == list(range(1, Run.objects.get().journal + 1))


def test_a_page_goes_on_in_the_middle_of_a_block(attempt: Attempt) -> None:  # noqa: F811
    held = fill(attempt, 2 * BLOCK)
    middle = Event.objects.get(source="node@0", seq=20).number
    before = live.batch(attempt.run_id, middle, 10)
    fold(held)
    assert not Event.objects.filter(source="node@0", seq=20).exists()
    assert live.batch(attempt.run_id, middle, 10) == before


def test_who_catches_up_folds_at_once_what_is_no_row_ever(attempt: Attempt) -> None:  # noqa: F811
    held, count = stream(attempt), 3 * BLOCK + 10
    lines = [line(seq, "metrics", seq, loss=1 / seq) for seq in range(1, count + 1)]
    lines[99] = line(100, "warning", None, text="x")
    first, stale = attempt.run.events.count() + 1, Stream.objects.get(pk=held.pk)
    assert (journal.record(held, lines[:30], 30), journal.record(held, lines[30:], count)) == (30, count - 30)
    assert journal.record(stale, lines, count) == 0
    kinds = Event.objects.exclude(kind="state").order_by("kind").values_list("kind").annotate(Count("pk"))
    assert dict(kinds) == {"metrics": BLOCK + 9, "warning": 1}
    assert [block.count for block in SampleBlock.objects.all()] == [BLOCK, BLOCK]
    told = [(e.number, e.seq, e.kind, e.data) for e in replayed(attempt.run_id, first - 1, 10_000)]
    assert told == [(first + i, one.seq, one.kind, one.data) for i, one in enumerate(lines)]
    found = series.read(attempt.run, "loss")
    assert found is not None
    assert (found.steps, found.values[-1]) == ([one.step for one in lines if one.step], 1 / count)
    assert fold(held) == 0


def test_what_comes_while_the_journal_is_read_is_no_gap_in_it(attempt: Attempt) -> None:  # noqa: F811
    """Lines of who catches up are in blocks at once, while those beside them are rows, which were read before."""
    held, logs, late = stream(attempt), stream(attempt, "log@0"), iter([True])

    def write_first(execute: Any, sql: str, *rest: Any) -> Any:
        if "runs_sampleblock" in sql and next(late, False):
            journal.record(logs, [line(1, "log", None, text="x")], 1)
            journal.record(held, [line(seq, "metrics", seq, loss=1.0) for seq in range(1, 3 * BLOCK)], 1)
        return execute(sql, *rest)

    with connection.execute_wrapper(write_first):
        numbers = [event.number for event in replayed(attempt.run_id, 0, 1000)]
    assert next(late, None) is None, "it was written"
    numbers += [event.number for event in replayed(attempt.run_id, numbers[-1], 1000)]
    assert numbers == list(range(1, Run.objects.get().journal + 1))


def test_a_part_of_a_series_over_time(attempt: Attempt) -> None:  # noqa: F811
    fold(fill(attempt, 2 * BLOCK))
    found = series.read(attempt.run, "node0/ram_used", 1500, 1700000010.5, 1700000000.0 + BLOCK + 1)
    assert found is not None
    assert found.steps == [1700000000.0 + seq for seq in range(10, BLOCK + 3)], "with those just outside"


def test_a_run_takes_its_blocks_with_it(attempt: Attempt) -> None:  # noqa: F811
    fold(fill(attempt, 2 * BLOCK))
    assert Chunk.objects.exists()
    Stream.objects.all().delete()
    attempt.run.delete()
    assert not SampleBlock.objects.exists()
    assert not Chunk.objects.exists()


def test_streams_fold_at_different_times(attempt: Attempt) -> None:  # noqa: F811
    due = [seq for seq in range(1, 2 * BLOCK + 1) if folding.is_due(Stream(pk=5, last_seq=seq), seq - 1)]
    assert due[1] - due[0] == BLOCK
    streams, seconds = [Stream(pk=pk) for pk in range(2, 602, 3)], range(1, BLOCK + 1)
    first = [next(s for s in seconds if folding.is_due(Stream(pk=one.pk, last_seq=s), s - 1)) for one in streams]
    assert max(first.count(second) for second in first) < 20, "of 200, no more than a few in one second"


@given(st.lists(st.tuples(st.integers(-(10**15), 9 * 10**15), st.floats()), max_size=70))
def test_points_come_back_as_they_were(points: list[tuple[int, float]]) -> None:
    given_points = [(tick / 1_000_000, value) for tick, value in points]
    xs, values = unpack_points(pack_points(given_points))
    assert xs.tolist() == [x for x, _ in given_points]
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, (_, b) in zip(values, given_points, strict=True))


def test_samples_come_back_as_they_were() -> None:
    rows = [[1, 2, 3, 4, {"a": [None, "NaN", 2**60, 0.1]}]]
    assert unpack_samples(pack_samples(rows)) == rows
