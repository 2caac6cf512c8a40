"""What many files gain comes over one pipe: whole lines, once, each file's in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from training import follow
from training.follow import BLOCK, LONG, Files, Followed
from workers.follow.frames import Frame, Frames, NoFrame, add, drop


class Running:
    """The real command, its orders and its frames."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-m", "training", "follow"], stdin=pipe, stdout=pipe)
        self.frames, self.got = Frames(), dict[int, bytes]()

    def tell(self, order: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(order)
        self.process.stdin.flush()

    def until(self, condition: Callable[[], Any]) -> None:
        assert self.process.stdout
        while not condition():
            block = os.read(self.process.stdout.fileno(), 1 << 16)
            assert block
            for number, offset, content in self.frames.feed(block):
                assert number == 0 or offset == len(self.got.get(number, b""))
                self.got[number] = self.got.get(number, b"") + content

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for end in (self.process.stdin, self.process.stdout):
            assert end
            end.close()


@pytest.fixture
def running() -> Iterator[Running]:
    with closing(Running()) as found:
        yield found


def test_it_follows_files_that_grow_and_files_that_come(running: Running, tmp_path: Path) -> None:
    old, late = tmp_path / "old", tmp_path / "la te"
    old.write_bytes(b"one\nto")
    running.tell(add(1, str(old), 0) + add(2, str(late), 0))
    running.until(lambda: running.got.get(1) == b"one\n")
    with old.open("ab") as file:
        file.write(b"rn\n")
    late.write_bytes(b"x\n")
    running.until(lambda: (running.got.get(1), running.got.get(2)) == (b"one\ntorn\n", b"x\n"))
    running.tell(drop(1))
    old.write_bytes(b"one\ntorn\nnot wanted\n")
    late.write_bytes(b"x\n" + b"y" * BLOCK + b"\n")
    running.until(lambda: len(running.got[2]) == BLOCK + 3)
    assert running.got[1] == b"one\ntorn\n"
    assert running.process.stdin
    running.process.stdin.close()
    assert running.process.wait(60) == 0


def test_a_line_that_was_taken_back_was_never_given(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = Followed(str(path), 0)
    assert file.news() == b""
    path.write_bytes(b"a\nhalf a li")
    assert file.news() == b"a\n"
    path.write_bytes(b"a\n")
    assert file.news() == b""
    path.write_bytes(b"a\nanother line\n")
    assert (file.news(), file.news()) == (b"another line\n", b"")


def test_a_long_file_comes_in_pieces_and_an_endless_line_too(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"l" * 99 + b"\n" + b"e" * BLOCK + b"\n" + b"t" * LONG)
    file, pieces = Followed(str(path), 0), list[bytes]()
    while piece := file.news():
        pieces.append(piece)
    assert b"".join(pieces) == path.read_bytes()[:-LONG]
    assert len(pieces) > 2


def test_it_ends_when_it_is_no_longer_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "DEAF_SECONDS", 0.0)
    (source, ours), (theirs, sink) = os.pipe(), os.pipe()
    assert follow.follow(source, sink) == follow.GONE
    assert os.read(theirs, 100) == follow.HELLO
    for end in (source, ours, theirs, sink):
        os.close(end)


def test_orders_may_come_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12\n34\n")
    files, order = Files(), add(7, str(tmp_path / "f"), 3)
    for byte in order + json.dumps({"ping": 1}).encode() + b"\n":
        files.told(bytes([byte]))
    assert list(files.frames()) == [b"7 3 3\n34\n"]


def test_frames_are_found_wherever_they_are_cut_and_below_what_a_login_prints() -> None:
    sent = b"Welcome!\n" + follow.HELLO + b"1 0 4\nab\n\n" + b"0 0 0\n" + b"22 7 1\n\n"
    for cut in range(1, len(sent)):
        frames = Frames()
        found = [frame for i in range(0, len(sent), cut) for frame in frames.feed(sent[i : i + cut])]
        assert found == [Frame(1, 0, b"ab\n\n"), Frame(0, 0, b""), Frame(22, 7, b"\n")]


@pytest.mark.parametrize("sent", [follow.HELLO + b"bash: no\n", follow.HELLO + b"x" * 99, b"x" * 70_000])
def test_what_is_no_frame_is_told(sent: bytes) -> None:
    with pytest.raises(NoFrame):
        Frames().feed(sent)
