"""An SFTTrainer that packs only where samples don't see each other."""

from __future__ import annotations

from typing import Any

import torch
from trl import SFTTrainer

from .isolation import check_isolation


class Isolated(SFTTrainer):
    """SFTTrainer that tries its model, as it is sharded, before the first step on packed rows."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.tried = not (self.args.packing and self.padding_free)  # else nothing says that samples stand apart

    def training_step(self, model: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not self.tried:
            check_isolation(model, self.data_collator, self.model.config, self.args.device)
            self.tried = True
        loss: torch.Tensor = super().training_step(model, *args, **kwargs)
        return loss
