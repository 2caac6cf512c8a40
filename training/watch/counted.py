"""TRL's figures of a step, over all ranks in every step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from trl import SFTTrainer


class Counted(SFTTrainer):
    """SFTTrainer whose `num_tokens`, entropy and accuracy miss no rank.

    TRL adds them up with `gather_for_metrics`, which takes the ranks' sums for rows: in each accumulated batch of the
    last step of a pass it keeps as many as the pass has rows over, and drops the others. And a loss that is not
    finite spoils its own line alone.
    """

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        with all_ranks(self.accelerator):
            return super().compute_loss(*args, **kwargs)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        if "loss" in logs:
            self._tr_loss.zero_()  # the Trainer takes the sum from itself, and NaN less NaN is NaN
        super().log(logs, *args, **kwargs)


@contextmanager
def all_ranks(accelerator: Accelerator) -> Iterator[None]:
    """Have what is gathered for metrics kept whole."""
    accelerator.gather_for_metrics = accelerator.gather
    try:
        yield
    finally:
        del accelerator.gather_for_metrics
