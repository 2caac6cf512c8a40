from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from training.journal import Journal, tail, write_whole
from training.spec.events import parse


def lines(path: Path) -> list[tuple[int, str, int | None, dict[str, object]]]:
    return [(e.seq, e.kind, e.step, e.data) for e in map(parse, path.read_bytes().splitlines())]


def test_it_numbers_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.emit("phase", name="loading")
    journal.emit("metrics", 1, loss=math.nan)
    assert lines(journal.path) == [
        (1, "phase", None, {"name": "loading"}),
        (2, "metrics", 1, {"loss": "NaN"}),
    ]


def test_numbers_go_on_in_a_file_that_is_there(tmp_path: Path) -> None:
    Journal(tmp_path / "events.jsonl").emit("phase", name="a")
    Journal(tmp_path / "events.jsonl").emit("phase", name="b")
    assert [seq for seq, *_ in lines(tmp_path / "events.jsonl")] == [1, 2]


def test_several_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    code = f"from training.journal import Journal\nfor n in range(200): Journal({str(path)!r}).emit('metrics', n)"
    writers = [subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2]) for _ in range(3)]
    assert [w.wait(120) for w in writers] == [0, 0, 0]
    assert [seq for seq, *_ in lines(path)] == list(range(1, 601))


def test_two_that_take_turns_go_on_from_each_other(tmp_path: Path) -> None:
    first, second = Journal(tmp_path / "events.jsonl"), Journal(tmp_path / "events.jsonl")
    for journal in (first, first, second, first, second):
        journal.emit("phase")
    assert [seq for seq, *_ in lines(first.path)] == [1, 2, 3, 4, 5]


def test_threads_may_share_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    threads = [threading.Thread(target=lambda: [journal.emit("phase") for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seq for seq, *_ in lines(journal.path)] == list(range(1, 801))


def test_a_file_that_was_taken_away_begins_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.emit("phase", name="a")
    journal.path.unlink()
    journal.emit("phase", name="b")
    assert lines(journal.path) == [(1, "phase", None, {"name": "b"})]


def test_a_forked_child_takes_its_own_lock(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.emit("phase")
    child = os.fork()
    for _ in range(200):
        journal.emit("phase")
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [seq for seq, *_ in lines(journal.path)] == list(range(1, 402))


def test_what_json_cannot_hold_blocks_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.emit("warning", text="odd", what={1})
    journal.emit("finished")
    assert lines(journal.path) == [(1, "warning", None, {"text": "odd", "what": "{1}"}), (2, "finished", None, {})]


def test_only_the_first_of_a_kind(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.emit_first("finished", reason="disk_full")
    Journal(journal.path).emit_first("finished", reason="peer_ended")
    assert [data["reason"] for *_, data in lines(journal.path)] == ["disk_full"]


def test_it_never_raises_and_catches_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path / "later" / "events.jsonl")
    journal.emit("phase", name="loading")
    journal.emit("phase", name="training")
    assert capsys.readouterr().err.count("going on") == 1
    (tmp_path / "later").mkdir()
    journal.emit("finished", 3)
    assert [(seq, kind) for seq, kind, *_ in lines(journal.path)] == [(1, "phase"), (2, "phase"), (3, "finished")]


def test_a_torn_write_leaves_no_half_line(tmp_path: Path) -> None:
    file = os.open(tmp_path / "f", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    write_whole(file, b"first\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, old[1]))
    try:
        with pytest.raises(OSError, match="only 4 of 7 bytes"):
            write_whole(file, b"second\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        os.close(file)
    assert (tmp_path / "f").read_bytes() == b"first\n"


@pytest.mark.parametrize(
    "line",
    [
        b"not an event",
        b"[" * 200_000,
        b"9" * 5000,
        b'{"seq": 1e999, "at": 1, "kind": "log", "data": {}}',
        b'{"seq": 7, "at": ' + b"9" * 400 + b', "kind": "log", "data": {}}',
    ],
    ids=["words", "nesting", "digits", "infinite", "large"],
)
def test_a_line_that_no_event_holds_is_left_out_of_the_count(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "events.jsonl"
    Journal(path).emit("phase")
    with open(path, "ab") as file:
        file.write(line + b"\n")
    Journal(path).emit("phase")
    assert [event.seq for event in tail(path)] == [1, 2]
