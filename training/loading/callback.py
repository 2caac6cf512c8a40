"""When the model is sharded and before its first step: check that ranks agree, read back what is so."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..ranks import Ranks
from .equal import check_equal, computed_buffers
from .model import Loaded
from .readback import peak_ram, sharding


class Readback(TrainerCallback):
    """On every rank, ahead of who tells: adds to `facts` what `started` says of loading. Raises Ended."""

    def __init__(self, loaded: Loaded, ranks: Ranks, facts: dict[str, Any]):
        self.loaded, self.ranks, self.facts = loaded, ranks, facts

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = kwargs["model"]
        check_equal(computed_buffers(model), self.ranks, "buffer")
        self.facts |= {
            "loading": str(self.loaded.choice.way),
            "loading_seconds": round(self.loaded.timing.seconds, 3),
            "peak_ram": peak_ram(self.ranks),
            **sharding(model),
        }
