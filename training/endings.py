"""Why training ended with an error: from the exception to a reason and a sentence."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import suppress

import torch

from .data import BadData
from .saving.bad import BadCheckpoint
from .spec.faults import Reason
from .spec.lint import Refused

# What gloo and NCCL say on a healthy rank when another one is gone.
PEER_GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "remote process exited")
# What gloo and NCCL say of a rank that does not come; torch's store of one that never came.
TIMED_OUT = ("Timed out waiting", "ollective operation timeout", "failed to pass monitoredBarrier", "ncclTimeout",
             "Timed out after")  # fmt: skip
# torch.save reports a full disk only so; the number of the error is lost on the way.
WRITER_FAILED = ("PytorchStreamWriter failed", "unexpected pos")


class Ended(Exception):
    """All ranks agreed to end, for the same reason, or for one that is a neighbour's. `rank`: whose it is, if one's."""

    def __init__(self, reason: Reason, text: str, rank: int | None = None):
        self.reason, self.rank = reason, rank
        super().__init__(text)


def reason_for(error: BaseException) -> Reason:
    """Return the reason behind `error`."""
    if isinstance(error, Ended):
        return error.reason
    chain = list(causes(error))
    if any(isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT) for e in chain):
        return Reason.DISK_FULL
    if any(words in str(e) for e in chain for words in WRITER_FAILED):
        return Reason.DISK_FULL
    if any(isinstance(e, torch.cuda.OutOfMemoryError) for e in chain):
        return Reason.OUT_OF_GPU_MEMORY
    if isinstance(error, BadData):
        return Reason.DATA
    if isinstance(error, BadCheckpoint):
        return Reason.CHECKPOINT
    if isinstance(error, (Refused, ValueError)):
        return Reason.CONFIGURATION
    if any(isinstance(e, AssertionError) or "device-side assert" in str(e) for e in chain):
        return Reason.ASSERTION
    if any(words in str(e) for e in chain for words in PEER_GONE):
        return Reason.PEER_ENDED
    if any(isinstance(e, RuntimeError) and words in str(e) for e in chain for words in TIMED_OUT):
        return Reason.COLLECTIVE_TIMEOUT
    return Reason.RANK_FAILED


def failed_rank(error: BaseException, own: int) -> int:
    """Return the rank that failed, where rank `own` met `error`."""
    known = error.rank if isinstance(error, Ended) else None
    return own if known is None else known


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what it came from, also through a distributed save, which wraps each rank's own."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = [current.__cause__, current.__context__, *(f[0] for f in getattr(current, "failures", {}).values())]
        waiting += [e for e in inner if isinstance(e, BaseException)]


def sentence(error: BaseException) -> str:
    """Return the innermost message of `error`, on one line, never longer than a page shows."""
    *_, last = causes(error)
    text = " ".join(str(last if not isinstance(error, (Ended, ValueError)) else error).split())
    return f"{type(last).__name__}: {text}"[:1000] if not isinstance(error, (Ended, Refused)) else text[:1000]


def print_error(error: BaseException) -> None:
    """Print where `error` came from. Never raises: the log may lie on the disk that is full."""
    with suppress(OSError):
        traceback.print_exception(error)
