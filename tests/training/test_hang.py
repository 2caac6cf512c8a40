"""A rank that makes no progress writes its stacks and says so; it is not ended by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from training.evidence import hang
from training.journal import tail
from training.spec.events import Event
from training.spec.folder import JobFolder
from training.spec.ports import free_port
from training.watch.hang import HangWatch
from training.watch.pulse import Pulse

from . import hanging, ranks_harness
from .launch import ROOT
from .nodejobs import until


class Rank:
    """One process of hanging.py in `folder`."""

    def __init__(self, folder: Path, how: str, *, rank: int = 0, seconds: float = 0.5):
        self.folder, self.rank = folder, rank
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.hanging", str(folder), str(seconds), how],
            cwd=ROOT,
            env={**os.environ, "RANK": str(rank)},
            stdout=subprocess.PIPE,
        )

    @property
    def file(self) -> Path:
        return self.folder / f"stacks-rank{self.rank}.txt"

    def up(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"up\n"

    def ended(self) -> str:
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return out.decode()


def warnings(folder: Path) -> list[Event]:
    path = folder / "events.jsonl"
    return [event for event in tail(path) if event.kind == "warning"] if path.exists() else []


def data_of(folder: Path, rank: int) -> dict[str, Any]:
    (found,) = [event.data for event in warnings(folder) if event.data["rank"] == rank]
    return found


def test_it_writes_where_it_is_and_goes_on(tmp_path: Path) -> None:
    rank = Rank(tmp_path, "python")
    until(lambda: warnings(tmp_path))
    (tmp_path / "go").touch()
    assert "through" in rank.ended()
    text = rank.file.read_text()
    assert "in waits" in text
    assert text.startswith("rank 0 makes no progress in forward backward, step 41, since 20")
    (warning,) = warnings(tmp_path)
    assert warning.step == 41
    assert warning.data["part"] == "forward_backward"
    assert warning.data["idle_seconds"] >= 0.5
    assert warning.data["text"].endswith("; stacks in stacks-rank0.txt")


def test_one_that_keeps_python_s_lock_is_written_without_python(tmp_path: Path) -> None:
    rank = Rank(tmp_path, "c")
    assert "through" in rank.ended()
    assert "in keeps_the_lock" in rank.file.read_text()


def test_a_rank_in_progress_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    rank = Rank(tmp_path, "python", seconds=60)
    assert "through" in rank.ended()
    assert list(tmp_path.iterdir()) == [tmp_path / "go"]


def test_training_goes_on_where_there_is_no_place_for_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with HangWatch(Pulse("loading"), JobFolder(PurePosixPath(tmp_path / "nowhere")), 0, 60):
        pass
    assert "going on without" in capfd.readouterr().err


def test_a_person_may_ask_for_the_stacks(tmp_path: Path) -> None:
    rank = Rank(tmp_path, "python", seconds=600)
    rank.up()
    rank.process.send_signal(signal.SIGUSR1)
    until(lambda: "in main" in rank.file.read_text())
    (tmp_path / "go").touch()
    assert "through" in rank.ended()


def test_a_stopped_neighbour_is_named(tmp_path: Path) -> None:
    """A process that a signal has stopped can write nothing itself."""
    stopped = Rank(tmp_path, "python", rank=3, seconds=600)
    stopped.up()
    stopped.process.send_signal(signal.SIGSTOP)
    rank = Rank(tmp_path, "python")
    until(lambda: warnings(tmp_path))
    stopped.process.send_signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    assert "through" in rank.ended()
    assert "through" in stopped.ended()
    assert f"; rank 3, process {stopped.process.pid}, is stopped by a signal;" in data_of(tmp_path, 0)["text"]


@pytest.mark.ranks
def test_where_one_hangs_in_front_of_a_collective_all_write(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    make = ranks_harness.server().Process
    ranks = [make(target=hanging.in_front_of_a_barrier, args=(tmp_path, 0.5, n, port)) for n in range(2)]
    for rank in ranks:
        rank.start()
    until(lambda: len(warnings(tmp_path)) == 2)
    told = hang.told(JobFolder(PurePosixPath(tmp_path)))
    assert [(one.rank, one.waits) for one in told] == [(0, True), (1, False)]
    (tmp_path / "go").touch()
    for rank in ranks:
        rank.join()
    assert hang.told(JobFolder(PurePosixPath(tmp_path))) == []
    assert [rank.exitcode for rank in ranks] == [0, 0]
    first, second = ((tmp_path / f"stacks-rank{n}.txt").read_text() for n in range(2))
    assert "in barrier" in first
    assert "in waits" in second
    assert {event.data["rank"] for event in warnings(tmp_path)} == {0, 1}
