"""Samples fold into blocks and chunks, and nothing that reads them can tell."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.test_journal import attempt, line, stream  # noqa: F401
from webapp.runs import charts, folding, journal, live, samples, series
from webapp.runs.folding import BLOCK, fold
from webapp.runs.models import Attempt, Chunk, Event, Point, Run, SampleBlock, Series, Stream
from webapp.runs.packing import pack_points, pack_samples, unpack_points, unpack_samples
from webapp.runs.page import memory
from webapp.runs.replay import replayed

pytestmark = pytest.mark.django_db


def sample(seq: int, *, broken: bool = False) -> Any:
    gpus = [{"index": 0, "used": seq, "total": 99, "load": "NaN" if seq == 7 else None if seq == 8 else 0.5}]
    return line(seq, "sample", None, ram_used=1000 + seq, gpus=3 if broken else gpus, text="x")


def fill(attempt: Attempt, count: int) -> Stream:  # noqa: F811
    """Write samples, every tenth after a line of another stream; number 3 breaks its promise."""
    held = stream(attempt, "node@0")
    for first in range(1, count + 1, 10):
        lines = [sample(seq, broken=seq == 3) for seq in range(first, min(first + 10, count + 1))]
        journal.record(held, lines, first * 100)
        journal.record(stream(attempt), [line(first, "metrics", first, loss=1.0)], first)
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
        "picture": charts.picture(run, 1000),
        "thinned": series.read(run, "node0/ram_used", 20),
        "load": series.read(run, "node0/gpu0/load"),
        "last": series.last_values(run),
        "names": series.names(run),
        "memory": [(node.bars, node.sample.seq) for node in memory(run)["nodes"]],
        "events": [(e.number, e.source, e.seq, e.at, e.received_at, e.data) for e in replayed(run.pk, 0, 10_000)],
    }


def test_what_was_folded_reads_as_before(attempt: Attempt) -> None:  # noqa: F811
    held = fill(attempt, 3 * BLOCK + 5)
    before = seen(attempt.run)
    assert fold(held) == 2
    assert fold(held) == 0
    assert seen(attempt.run) == before
    assert Event.objects.filter(kind="sample").count() == BLOCK + 5
    assert {block.count for block in SampleBlock.objects.all()} == {BLOCK}
    assert not Point.objects.filter(series__axis="time").exists()
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


def test_a_part_of_a_series_over_time(attempt: Attempt) -> None:  # noqa: F811
    held = fill(attempt, 2 * BLOCK)
    fold(held)
    own = Series.objects.get(name="node0/ram_used")
    wanted = samples.Wanted(own.pk, attempt.pk, own.name, 1700000010.0, 1700000000.0 + BLOCK + 1)
    assert [x for x, _, _ in samples.rows([wanted])] == [1700000000.0 + seq for seq in range(11, BLOCK + 2)]


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
    assert xs == [x for x, _ in given_points]
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, (_, b) in zip(values, given_points, strict=True))


def test_samples_come_back_as_they_were() -> None:
    rows = [[1, 2, 3, 4, {"a": [None, "NaN", 2**60, 0.1]}]]
    assert unpack_samples(pack_samples(rows)) == rows
