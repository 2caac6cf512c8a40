"""Bytes to lines: torn, broken, endless, and read twice."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.spec.events import BadLine, Event, parse
from workers.follow.reader import LOG_BYTES, Batch, LogReader, Reader, fold, reader_of, sound


def line(seq: int, **data: object) -> bytes:
    return Event(seq, 1700000000.0, "metrics", seq, data).line().encode()


def feed(reader: Reader, content: bytes, cuts: list[int]) -> list[Batch]:
    ends = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    return [reader.feed(content[a:b]) for a, b in pairwise(ends)]


def test_a_torn_line_waits_for_its_rest() -> None:
    reader = Reader(100)
    whole = line(1)
    first = reader.feed(whole[:10])
    assert (first.offset, first.lines) == (100, [])
    second = reader.feed(whole[10:] + whole[:3])
    assert [e.seq for e in second.lines] == [1]
    assert second.offset == 100 + len(whole)


def test_what_is_left_at_the_end_is_read_too() -> None:
    reader = Reader(0)
    reader.feed(line(1)[:-1])
    rest = reader.rest()
    assert [e.seq for e in rest.lines] == [1]
    assert reader.rest().lines == []


def test_a_broken_line_is_told_and_blocks_nothing() -> None:
    broken = [
        b"not json\n", b"{}\n", b'{"seq":0,"at":1,"kind":"x","data":{}}\n',
        b'{"seq":1,"at":1e999,"kind":"x","data":{}}\n',
        b'{"seq":1,"at":NaN,"kind":"x","data":{}}\n', b'{"seq":1,"at":1,"kind":"x","step":-1,"data":{}}\n',
        b'{"seq":1e30,"at":1,"kind":"x","data":{}}\n', b'{"seq":1,"at":1,"kind":"x","step":9999999999,"data":{}}\n',
        b"[" * 100000 + b"\n", b"\xff\xfe\n", b'{"seq":1,"at":1,"kind":"' + b"k" * 31 + b'","data":{}}\n',
    ]  # fmt: skip
    for bad in broken:
        batch = Reader(0).feed(bad + line(7))
        assert [e.seq for e in batch.lines] == [7], bad[:60]
        assert [b.end for b in batch.bad] == [len(bad)], bad[:60]


def test_an_empty_line_is_no_warning() -> None:
    batch = Reader(0).feed(b"\n" + line(1))
    assert (len(batch.lines), batch.bad) == (1, [])


def test_a_line_without_end_does_not_fill_memory() -> None:
    reader = Reader(0)
    batches = [reader.feed(b"x" * (1 << 20)) for _ in range(6)]
    assert sum(len(batch.bad) for batch in batches) == 1


@given(st.lists(st.integers(0, 400), max_size=8))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    content = b"".join(line(seq, loss=float("nan")) for seq in range(1, 5))
    batches = feed(Reader(0), content, cuts)
    assert [e.seq for batch in batches for e in batch.lines] == [1, 2, 3, 4]
    assert batches[-1].offset == len(content)


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\xff", b"x" * 70000]), max_size=12),
    st.lists(st.integers(0, 300000)),
)
def test_a_log_read_twice_gives_the_same_numbers(parts: list[bytes], cuts: list[int]) -> None:
    content = b"".join(parts) + b"\n"
    once = [e for batch in feed(LogReader(0), content, []) for e in batch.lines]
    again = [e for batch in feed(LogReader(0), content, cuts) for e in batch.lines]
    assert [(e.seq, e.data) for e in once] == [(e.seq, e.data) for e in again]
    assert all(len(json.dumps(e.data)) < 8 * LOG_BYTES for e in once)


def test_a_progress_bar_leaves_its_last_state() -> None:
    assert fold(b" 10%|#  |\r 20%|## |\r\r") == " 20%|## |"
    assert fold(b"\r\r  \r") == ""
    assert fold(b"caf\xc3\xa9 \xff") == "caf\u00e9 \\xff"


def test_the_source_says_how_a_file_is_read() -> None:
    assert isinstance(reader_of("log@0", 0), LogReader)
    assert isinstance(reader_of("exportlog@3", 0), LogReader)
    assert not isinstance(reader_of("train@0", 0), LogReader)


USUAL = {"loss": 0.1, "n": 7, "odd": "NaN", "gpus": [{"index": 0, "used": None}], "text": 'ä " \\ {'}


@pytest.mark.parametrize("kind", ["metrics", "sample"])
def test_a_usual_line_keeps_its_data_s_text(kind: str) -> None:
    raw = Event(5, 1700000000.25, kind, 3, USUAL).line().rstrip().replace("\\u00e4", "ä")
    found = sound(raw.encode())
    assert (found, found.text) == (parse(raw), raw[raw.index('"data":') + 7 : -1])


HEAD = b'{"seq":1,"at":1.5,"kind":"metrics","step":null,"data":'


@pytest.mark.parametrize(
    "tail",
    [b'{"x":NaN}}', b'{"x":1e999}}', b'{"x":-Infinity}}', b'{"x":[{"y":' + b"9" * 400 + b'.5}]}}', b'{"x":"\\u0000"}}',
     b'{"x":"\\ud800"}}', b'{"x":1},"data":{"y":2}}', b'{"x":1},"more":{}}', b'{"x":1} }'],
)  # fmt: skip
def test_a_line_that_is_otherwise_is_read_all_the_same_and_keeps_no_text(tail: bytes) -> None:
    found = sound(HEAD + tail)
    assert (repr(found), found.text) == (repr(parse((HEAD + tail).decode())), "")


@pytest.mark.parametrize("depth", [600, 100_000])
def test_a_line_that_is_nested_too_deeply_is_none(depth: int) -> None:
    with pytest.raises(BadLine):
        parse(HEAD + b'{"x":' + b"[" * depth + b"]" * depth + b"}}")


@pytest.mark.parametrize("tail", [b"{x}}", b'{"x":1}', b'{"x":"\xff"}}', b'{"x":"\n"}}', b"[1]}"])
def test_a_line_that_begins_as_usual_and_is_none(tail: bytes) -> None:
    with pytest.raises(BadLine):
        sound(HEAD + tail)
