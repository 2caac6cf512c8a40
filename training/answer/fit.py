"""Where a model fits: on a GPU that has room for it, else in this host's memory, else nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from ..memory import memory
from ..spec.answer import AnswerJob
from ..spec.lint import Problem, Refused
from .look import Known

PROCESS = 700_000_000  # bytes: the process with its libraries, activations, the largest tensor on its way
FIX = "Choose a smaller model or dtype, or another node; or wait until memory is free."


@dataclass(frozen=True)
class Place:
    """`device` as torch names it; `why` it is no better one, where there is something to say."""

    device: str
    why: str = ""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def check(known: list[Known], job: AnswerJob) -> None:
    """Raise Refused, naming every model that fits nowhere here."""
    problems = []
    for one in known:
        try:
            place(one, job)
        except Refused as refused:
            problems += refused.problems
    if problems:
        raise Refused(problems)


def place(known: Known, job: AnswerJob) -> Place:
    """Return where the model goes. Raises Refused."""
    needed = known.bytes + known.cache + PROCESS
    why = ""
    if job.device == "auto" and torch.cuda.is_available():
        free, index = max((torch.cuda.mem_get_info(n)[0], n) for n in range(torch.cuda.device_count()))
        if needed <= free:
            return Place(f"cuda:{index}")
        why = f"the emptiest GPU has {_gb(free)} free of the {_gb(needed)} that it takes"
    host = memory()
    have = max(0, host.available - int(job.reserve * host.total))
    if needed > have:
        kept = f", {_gb(int(job.reserve * host.total))} kept for the run that is at work here" if job.reserve else ""
        reason = f"{known.asked.name} takes {_gb(needed)} of memory and {_gb(have)} are free{kept}"
        raise Refused([Problem(f"models.{known.asked.name}", f"{reason}{'; ' if why else ''}{why}", FIX)])
    return Place("cpu", why)


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
