"""PURE: how many bytes one checkpoint takes, before there is one.

For N numbers in n tensors that are trained over W ranks, masters of m bytes and an optimizer of s bytes a number:

weights     N m, and the embeddings once more where they are the head as well: both names are saved
optimizer   N s: two moments in the masters' format; in fp32 or in 8 bits, with a scale a block of 256, where paged
pieces      each tensor of each rank is a small file of its own inside the shard, with its entry in the index
the rest    each rank's random numbers; the schedule, the position in the data

Held against real checkpoints by the tests: fp32 and bf16 masters, tied and untied, LoRA, one rank and two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .recipe import Recipe

PIECE = 1_780  # bytes around a tensor's numbers in a shard, and of its chunk in the index: measured, torch 2.13
TENSOR = 3_000  # bytes a trained tensor besides, however many ranks: its step, its entries in both indexes
RANK = 16_000  # bytes a rank besides: its random numbers, of CPU and one GPU
COMMON = 8_000
BLOCK = 256  # numbers that share a scale of 4 bytes in an 8-bit optimizer


@dataclass(frozen=True)
class Layer:
    """`count` linear layers of one name and shape."""

    name: str
    rows: int
    columns: int
    count: int


@dataclass(frozen=True)
class Shape:
    """What a base model holds, tied tensors once. `tied`: numbers of the embeddings that are the head as well."""

    parameters: int
    tensors: int
    tied: int = 0
    layers: tuple[Layer, ...] = ()

    @classmethod
    def of(cls, told: Mapping[str, Any] | None) -> Shape | None:
        """Return the shape that preflight told (`model_shape`); None where it told none."""
        if not told:
            return None
        layers = tuple(Layer(*layer) for layer in told["layers"])
        return cls(int(told["parameters"]), int(told["tensors"]), int(told["tied"]), layers)


@dataclass(frozen=True)
class Trained:
    """What the optimizer moves. `twice`: numbers that the weights hold under two names."""

    numbers: int
    tensors: int
    twice: int = 0


def trained(shape: Shape, recipe: Recipe) -> Trained:
    """Return what of the model, or beside it, is trained."""
    how = recipe.method
    if not how.adapts:
        return Trained(shape.parameters, shape.tensors, shape.tied)
    adapted = [layer for layer in shape.layers if not how.target_modules or layer.name in how.target_modules]
    whole = [layer for layer in shape.layers if layer.name in how.modules_to_save]
    factors = sum(layer.count * how.rank * (layer.rows + layer.columns) for layer in adapted)
    saved = sum(layer.count * layer.rows * layer.columns for layer in whole)
    return Trained(factors + saved, sum(2 * layer.count for layer in adapted) + sum(layer.count for layer in whole))


def checkpoint_bytes(what: Trained, recipe: Recipe, world_size: int) -> int:
    """Return the bytes of one checkpoint, over all nodes together."""
    master = master_bytes(recipe)
    numbers = (what.numbers + what.twice) * master + math.ceil(what.numbers * _optimizer_bytes(recipe, master))
    return numbers + what.tensors * (TENSOR + 3 * PIECE * world_size) + RANK * world_size + COMMON


def node_share(whole: int, local_ranks: int, world_size: int) -> int:
    """Return the part of `whole` that lies on the private disk of a node with `local_ranks` of the ranks."""
    return math.ceil(whole * local_ranks / world_size)


def master_bytes(recipe: Recipe) -> int:
    """Return the bytes of a number that the optimizer moves."""
    return 2 if recipe.master_weights == "bf16" or recipe.method.kind == "qlora" else 4


def _optimizer_bytes(recipe: Recipe, master: int) -> float:
    """Return the optimizer's bytes a number; of the paged ones by bitsandbytes' formats, which no GPU has measured."""
    kind = recipe.optimisation.optimizer
    if kind == "paged_adamw_8bit":
        return 2 + 2 * 4 / BLOCK
    return 2 * 4 if kind == "paged_adamw_32bit" else 2 * master
