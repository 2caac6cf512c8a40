"""The adapter in a checkpoint: its tensors by what they change, its scale, and whether it fits the base."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import torch

from ..adapters.names import CONFIG, Layers, layers
from ..spec.job import ExportJob
from .blueprint import WRONG_BASE, Blueprint
from .distcp import Checkpoint
from .outcome import refuse

# Of PEFT's settings those that change what is added to the base.
FOREIGN = ("use_dora", "rank_pattern", "alpha_pattern", "alora_invocation_tokens")


@dataclass(frozen=True)
class Adapter:
    """What a checkpoint holds: `layers` by the base's names, `scale` of the factors' product.

    `transposed`: the base keeps its layers as (inputs, outputs), as GPT-2 does.
    """

    checkpoint: Checkpoint
    layers: Layers
    scale: float
    transposed: bool

    def whole(self, name: str) -> torch.Tensor:
        """Return one of the adapter's tensors in fp32."""
        return torch.cat(list(self.checkpoint.blocks(name))).float()

    def factors(self, target: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (rows, rank) and (rank, columns), whose product, scaled, is added to the base's `target`."""
        a, b = (self.whole(name) for name in self.layers.factors[target])
        return (a.T, b.T) if self.transposed else (b, a)


def read(folder: Path, checkpoint: Checkpoint) -> Adapter:
    """Return the adapter of the checkpoint in `folder`, whose tensors are in `checkpoint`. Raises Refused."""
    config = read_config(folder)
    try:
        found = layers(list(checkpoint.tensors))
    except ValueError as error:
        raise refuse("checkpoint", f"it holds half of an adapter: {error}", "Export another checkpoint.") from error
    rank, alpha = int(config["r"]), float(config["lora_alpha"])
    scale = alpha / sqrt(rank) if config.get("use_rslora") else alpha / rank
    return Adapter(checkpoint, found, scale, bool(config.get("fan_in_fan_out")))


def read_config(folder: Path) -> dict[str, Any]:
    """Return PEFT's configuration as it lies in `folder`; raise Refused where this code would merge it wrongly."""
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text("utf-8"))
    odd = [name for name in FOREIGN if config.get(name)]
    if config.get("peft_type") != "LORA" or odd or config.get("bias", "none") != "none":
        what = odd[0] if odd else f"{config.get('peft_type')} with bias {config.get('bias')}"
        raise refuse("checkpoint", f"its adapter is none of ours: {what}", "Export it with PEFT.")
    return config


def config_for(job: ExportJob) -> dict[str, Any]:
    """Return what the exported folder says of itself: the live model's configuration and where the base is now."""
    return read_config(Path(job.checkpoint)) | {"base_model_name_or_path": job.model, "revision": job.revision or None}


def check(plan: Blueprint, adapter: Adapter) -> None:
    """Raise Refused unless every part of the adapter fits a tensor of the model."""
    for target, (a, b) in adapter.layers.factors.items():
        stored = adapter.checkpoint.tensors
        sides = stored[b].shape[0], stored[a].shape[1]
        _fits(plan, target, sides[::-1] if adapter.transposed else sides)
    for target, name in adapter.layers.whole.items():
        _fits(plan, target, adapter.checkpoint.tensors[name].shape)


def _fits(plan: Blueprint, target: str, shape: tuple[int, ...]) -> None:
    there = plan.shapes.get(target)
    if there is None:
        raise refuse("model", f"the adapter changes {target}, which this model has not", WRONG_BASE)
    if there != shape:
        raise refuse(
            "model", f"the adapter is for a {target} of {list(shape)}, the model's is {list(there)}", WRONG_BASE
        )
