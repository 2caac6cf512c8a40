"""Errors as they reach the end of a rank, and the reasons they become."""

from __future__ import annotations

import errno

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException, _wrap_exception

from training.data.rows import bad
from training.endings import Ended, reason_for, sentence
from training.spec.faults import Reason
from training.spec.lint import Problem, Refused

FULL = OSError(errno.ENOSPC, "No space left on device")


def caused(cause: BaseException) -> RuntimeError:
    try:
        raise RuntimeError("saving failed") from cause
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FULL, Reason.DISK_FULL),
        (caused(FULL), Reason.DISK_FULL),
        (CheckpointException("save", {1: _wrap_exception(FULL)}), Reason.DISK_FULL),
        (RuntimeError("PytorchStreamWriter failed writing file data/0"), Reason.DISK_FULL),
        (torch.cuda.OutOfMemoryError("CUDA out of memory"), Reason.OUT_OF_GPU_MEMORY),
        (bad("train.jsonl", 3, "it is not JSON", "Mend it."), Reason.DATA),
        (Refused([Problem("model", "too small", "Resize.")]), Reason.CONFIGURATION),
        (ValueError("no such optimizer"), Reason.CONFIGURATION),
        (RuntimeError("[gloo] Connection closed by peer [10.0.0.2]:4711"), Reason.PEER_ENDED),
        (RuntimeError("Timed out waiting 1800000ms for recv operation to complete"), Reason.COLLECTIVE_TIMEOUT),
        (caused(AssertionError("shapes differ")), Reason.ASSERTION),
        (Ended(Reason.DISK_FULL, "rank 3 could not save"), Reason.DISK_FULL),
        (OSError(errno.EIO, "Input/output error"), Reason.RANK_FAILED),
        (KeyError("weight"), Reason.RANK_FAILED),
    ],
)
def test_reasons(error: BaseException, reason: Reason) -> None:
    assert reason_for(error) == reason


def test_a_sentence_is_one_short_line() -> None:
    assert sentence(RuntimeError("a\nb" * 900)).count("\n") == 0
    assert len(sentence(RuntimeError("a\nb" * 900))) <= 1000
    assert sentence(Refused([Problem("model", "too small", "Resize.")])) == "model: too small. Resize."
    assert sentence(caused(FULL)) == "OSError: [Errno 28] No space left on device"
