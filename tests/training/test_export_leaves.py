"""What an export leaves: nothing where something was found wrong, else what the next start goes on from."""

from __future__ import annotations

import errno
import hashlib
import signal
import sys
from pathlib import Path

import pytest

from training.export import place, proof, record
from training.export.outcome import Damaged, Failure, NoRoom, refuse
from training.spec.faults import Reason
from training.spec.lint import Problem

WHY = [Problem("x", "y", "z")]
PASSING = [
    SystemExit("ended by signal 15"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "once"),
    NoRoom(WHY), Failure(Reason.KILLED_BY_HOST, "the proof was killed"),
]  # fmt: skip
WRONG = [Damaged(WHY), refuse("dtype", "none of ours", "choose"), Failure(Reason.PROOF, "keys: some are missing")]


def end(out: Path, error: BaseException, *, written: bytes = b"half") -> None:
    with pytest.raises(type(error)):
        work_until(out, error, written)


def work_until(out: Path, error: BaseException, written: bytes) -> None:
    with place.working(out) as work:
        work.go_on("mine")
        (work.folder / "model.safetensors").write_bytes(written)
        if written:
            work.ledger.note("model.safetensors", noted(written))
        raise error


def noted(data: bytes) -> record.Durable:
    return record.Durable(size=len(data), sha256=hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_may_pass_leaves_what_is_on_the_disk(tmp_path: Path, error: BaseException) -> None:
    out = tmp_path / "model"
    end(out, error)
    with place.working(out) as work:
        assert work.go_on("mine") == {"model.safetensors": noted(b"half")}


@pytest.mark.parametrize("error", WRONG, ids=repr)
def test_what_was_found_wrong_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    end(tmp_path / "model", error)
    assert list(tmp_path.iterdir()) == []


def test_of_what_has_not_begun_to_write_nothing_is_left(tmp_path: Path) -> None:
    end(tmp_path / "model", SystemExit("ended by signal 15"), written=b"")
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_a_reboot_ends_says_nothing_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system asks each process by itself: the proof may be gone before the export hears of it."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nkill -{signal.SIGTERM.value} $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SystemExit, match="the proof was ended by signal 15"):
        proof._run({}, tmp_path / "events.jsonl")
