"""What training goes on from: which part of the checkpoint comes back, and which begins anew."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.api import CheckpointException

from ..endings import reason_for, sentence
from ..spec.faults import Reason
from ..spec.lint import Problem, Refused
from ..spec.parts import Fate, StatePart
from . import states
from .bad import BadCheckpoint
from .checkpoints import Metric
from .progress import NAME, Origin, Progress, Window

ANOTHER = "Choose another checkpoint."
CHANGED = {
    "data": "other tokens than these: rows, tokenizer, data settings or library versions have changed since",
    "model": "another base model than this one",
    "optimisation": "other settings of optimizer or schedule: its peak learning rate, betas, epsilon and weight decay"
    " go on, only the schedule's shape and length are the recipe's. To take the recipe's, begin anew: --fresh optimizer"
    " --fresh scheduler",
}
UNSAID = (Reason.CONFIGURATION, Reason.RANK_FAILED)  # reasons that say nothing of what was being read


@dataclass(frozen=True)
class Skipped:
    """A newer checkpoint that is torn, as one node sees it."""

    name: str
    node_rank: int
    fault: str


@dataclass
class Resume:
    """A checkpoint that every rank has found whole. `saved_on`, `world_size`: ranks then and now."""

    folder: Path
    step: int
    saved_on: int
    world_size: int
    parts: dict[StatePart, Fate]
    skipped: list[Skipped] = field(default_factory=list)
    progress: Progress | None = None
    window: Window | None = None
    metrics: dict[str, Metric] = field(default_factory=dict)
    """What was known when it was saved, and so is until it is measured again."""
    rows_again: int = 0
    """Rows that are seen twice, so that training goes on at the start of a step."""

    def restores(self, part: StatePart) -> bool:
        return self.parts[part] is not Fate.FRESH

    def check_data(self, rows_in_all: int, seed: int) -> None:
        """Raise BadCheckpoint where this is not the data, in the order, that the checkpoint stands in."""
        then = self.progress
        assert then
        if then.rows_in_all != rows_in_all:
            raise self._no_place(f"the data has {rows_in_all} rows and had {then.rows_in_all}")
        if then.seed != seed:
            raise self._no_place(f"the seed is {seed} and was {then.seed}")

    def _no_place(self, reason: str) -> BadCheckpoint:
        return missing(self.folder, StatePart.DATA_POSITION, f"has no place in this data: {reason}")

    def check_epochs(self, rows_per_step: int) -> None:
        """Raise Refused where passes over the data would be counted in steps of two sizes.

        The end and the schedule are reckoned in steps of this launch, and those taken are counted as they were.
        """
        then = self.progress.rows_per_step if self.progress else 0
        if then and then != rows_per_step:
            reason = f"a step takes {rows_per_step} rows and took {then} before {self.folder.name}"
            fix = f"Choose ranks, per_device_batch and accumulation that make {then}, or set max_steps and no epochs."
            raise Refused([Problem("optimisation.epochs", f"{reason}, so passes can't be told in steps", fix)])

    def changed(self, now: Origin) -> dict[str, str]:
        """Return in words what training goes on with that the checkpoint was not made with, by its name.

        Told and not refused: rows may have been mended on purpose.
        """
        then = self.progress.origin if self.progress else Origin()
        names = [n for n in CHANGED if getattr(then, n) and getattr(then, n) != getattr(now, n)]
        if not (self.restores(StatePart.OPTIMIZER) or self.restores(StatePart.SCHEDULER)):
            names = [n for n in names if n != "optimisation"]
        return {n: f"{self.folder.name} was made with {CHANGED[n]}" for n in names}

    def told(self) -> dict[str, Any]:
        """Return the data of the event `resumed`."""
        return {
            "name": self.folder.name,
            "saved_on": self.saved_on,
            "world_size": self.world_size,
            "parts": {str(part): str(fate) for part, fate in self.parts.items()},
            "rows_again": self.rows_again,
            "skipped": [vars(skipped) for skipped in self.skipped],
        }


def fates(folder: Path, names: Set[str], saved_on: int, world_size: int, fresh: Set[str]) -> dict[StatePart, Fate]:
    """Return what becomes of each part of a checkpoint of the files `names`. Raises BadCheckpoint where one is missing.

    On another number of ranks, shards are cut anew and random numbers begin anew: they are one rank's own.
    """
    found: dict[StatePart, Fate] = {}
    for part, needed in _files(saved_on).items():
        same = saved_on == world_size
        if part in fresh or (part is StatePart.RNG and not same):
            found[part] = Fate.FRESH
        elif lacking := sorted(needed - names):
            raise missing(folder, part, f"has no {lacking[0]}")
        else:
            found[part] = Fate.RESTORED if same or part not in SHARDED else Fate.RESHARDED
    return found


SHARDED = (StatePart.WEIGHTS, StatePart.OPTIMIZER)


def _files(saved_on: int) -> dict[StatePart, Set[str]]:
    """Return the files without which a part is not there."""
    rng = {f"rng_state_{rank}.pth" for rank in range(saved_on)} if saved_on > 1 else {"rng_state.pth"}
    return {
        StatePart.WEIGHTS: {f"{states.MODEL}/.metadata", "trainer_state.json"},
        StatePart.OPTIMIZER: {f"{states.OPTIMIZER}/.metadata"},
        StatePart.SCHEDULER: {"scheduler.pt"},
        StatePart.RNG: rng,
        StatePart.DATA_POSITION: {NAME},
        StatePart.TOKENS: {NAME},
    }


def missing(folder: Path, part: StatePart, reason: str) -> BadCheckpoint:
    """Return the refusal to go on without a part, with the way out."""
    anew = "" if part is StatePart.WEIGHTS else f" Or begin this part anew: fresh: [{part}]."
    text = f"{folder.name} {reason}, so its {part} can't be restored"
    return BadCheckpoint([Problem("resume_from", text, ANOTHER + anew)])


@contextmanager
def damaged(folder: str | Path) -> Iterator[None]:
    """Turn whatever reading the checkpoint raises into its refusal, except where another reason is plain."""
    try:
        yield
    except (Exception, CheckpointException) as error:
        if reason_for(error) not in UNSAID:
            raise
        reason = f"{Path(folder).name} can't be read: {sentence(error)}"
        raise BadCheckpoint([Problem("resume_from", reason, ANOTHER)]) from error
