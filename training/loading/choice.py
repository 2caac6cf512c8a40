"""How weights get into the shards of this run: decided by all ranks together, out of what each can read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..ranks import Ranks
from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused
from .identity import index_in, sampled
from .stored import Unfit, weight_files
from .together import together

FIELD = "fsdp.weights"


class Way(StrEnum):
    """How weights reach the shards; the values of the recipe's `fsdp.weights`."""

    SLICES = "slices"
    BROADCAST = "broadcast"
    ACCELERATE = "accelerate"


@dataclass(frozen=True)
class Choice:
    """The way, and where it is not the leanest one: why."""

    way: Way
    why: str = ""


def choose(job: TrainJob, ranks: Ranks) -> Choice:
    """Return the same choice on every rank. Raises Refused, on all alike, where the recipe's own can't be."""
    asked: str = job.recipe.fsdp.weights
    if job.recipe.fsdp.version == 1 or asked == Way.ACCELERATE:
        return Choice(Way.ACCELERATE)
    if job.recipe.method.kind == "qlora":
        return fall_back(job, "a 4-bit base is quantised while it is loaded")
    try:
        seen = ranks.gather(together(ranks, lambda: _listing(Path(job.model))))
    except Unfit as error:
        return fall_back(job, str(error))
    if not seen[0]:
        raise Refused([Problem("model", f"rank 0 can't read {job.model}", "Put the model there, or name its place.")])
    blind = next((rank for rank, listing in enumerate(seen) if listing != seen[0]), None)
    if blind is None:
        return Choice(Way.BROADCAST if asked == Way.BROADCAST else Way.SLICES)
    odd = min(name for name, _ in seen[0].items() ^ seen[blind].items())
    what = f"rank {blind} does not see the same model files at {job.model} as rank 0: {odd}"
    if asked == Way.SLICES:
        raise Refused([Problem(FIELD, what, "Copy the model there, or choose broadcast or auto.")])
    return Choice(Way.BROADCAST, what)


def fall_back(job: TrainJob, why: str) -> Choice:
    """Return accelerate's way where the recipe leaves the choice; raise Refused where it asked for another one."""
    if job.recipe.fsdp.weights != "auto":
        raise Refused([Problem(FIELD, why, "Choose accelerate, or auto, which takes it where it must.")])
    return Choice(Way.ACCELERATE, why)


def _listing(folder: Path) -> dict[str, str]:
    """Return the weight files with a hash of samples of each, as far as this rank may read them.

    None where there is no folder. Raises Unfit where there is a folder without such files, Refused where its index
    is broken.
    """
    if not folder.is_dir():
        return {}
    readable = [name for name in weight_files(folder) if os.access(folder / name, os.R_OK)]
    return {name: sampled(folder / name) for name in readable} | (index_in(folder) if readable else {})
