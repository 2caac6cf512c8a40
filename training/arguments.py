"""The Trainer's arguments on this node: what `training.spec.trainer` says, as TRL's SFTConfig."""

from __future__ import annotations

from trl import SFTConfig

from .spec.job import TrainJob
from .spec.trainer import trainer_arguments


def arguments(job: TrainJob, *, accelerator: bool) -> SFTConfig:
    """Return the Trainer's arguments. Making them brings the process group up."""
    evaluates = bool(job.test or job.recipe.data.test_share)
    return SFTConfig(
        **trainer_arguments(job.recipe, checkpoints=job.checkpoints, evaluates=evaluates, accelerator=accelerator)
    )
