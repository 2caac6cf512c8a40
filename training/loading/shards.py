"""What a rank holds of each tensor of a sharded model, and putting it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from ..adapters.names import base_name
from .stored import Stored


@dataclass(frozen=True)
class Wanted:
    """Rows of one stored tensor that this rank needs, and the memory they go to."""

    stored: Stored
    rows: range
    into: torch.Tensor


class Source(Protocol):
    """Where weights come from. `placed`: the stored tensor of each name of the base model."""

    placed: Mapping[str, Stored]

    def read(self, wanted: list[Wanted]) -> None:
        """Fill what is wanted. Called on every rank at once, with the same tensors in the same order."""


def fill(
    model: nn.Module, originals: Mapping[str, torch.Tensor], source: Source, *, on_host: bool = False
) -> dict[str, torch.Tensor]:
    """Give a model that was sharded on `meta` its weights, each rank its own part and nothing else.

    Names that PEFT put around the base model's are understood. What no file holds (a fresh adapter) is taken out of
    `originals`, this rank's own state dict from before sharding, and returned: it must be equal on all ranks.
    `on_host`: shards stay in host memory, for FSDP's CPU offload. Tied tensors stay one. Every stored tensor is read
    at least once, or this fails.
    """
    state = model.state_dict(keep_vars=True)
    parts, wanted, fresh = {}, [], {}
    for key, names in _names(state).items():
        where = next((found for name in names if (found := source.placed.get(base_name(name) or ""))), None)
        rows, parts[key] = _memory(state[names[0]].detach(), on_host=on_host)
        if where is None:
            fresh[names[0]] = originals[names[0]].detach()
            _local(parts[key]).copy_(_rows(fresh[names[0]], rows))
        else:
            wanted.append(Wanted(where, rows, _local(parts[key])))
    unread = {where.key for where in source.placed.values()} - {one.stored.key for one in wanted}
    assert not unread, f"stored tensors without a place in the sharded model: {sorted(unread)[:5]}"
    source.read(wanted)
    model.load_state_dict({name: parts[id(tensor)] for name, tensor in state.items()}, assign=True)
    return fresh


def _names(state: Mapping[str, torch.Tensor]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for name, tensor in state.items():
        names.setdefault(id(tensor), []).append(name)
    return names


def _memory(target: torch.Tensor, *, on_host: bool) -> tuple[range, torch.Tensor]:
    """Return which rows of a tensor on meta are this rank's, and a tensor like it whose own part is memory."""
    if not isinstance(target, DTensor):
        rows = range(target.shape[0] if target.shape else 1)
        return rows, torch.empty(target.shape, dtype=target.dtype, device=_device(target, on_host))
    mesh, placements = target.device_mesh, target.placements
    assert all(p == Shard(0) or isinstance(p, Replicate) for p in placements), placements
    shape, offset = compute_local_shape_and_global_offset(target.shape, mesh, placements)
    local = torch.empty(shape, dtype=target.dtype, device="cpu" if on_host else mesh.device_type)
    part = DTensor.from_local(local, mesh, placements, run_check=False, shape=target.shape, stride=target.stride())
    return range(offset[0], offset[0] + shape[0]), part


def _device(target: torch.Tensor, on_host: bool) -> Any:
    """Where a tensor goes that is not sharded: to the accelerator like the rest, where there is one."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if on_host or accelerator is None else accelerator


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _rows(whole: torch.Tensor, rows: range) -> torch.Tensor:
    return whole[rows.start : rows.stop] if whole.dim() else whole
