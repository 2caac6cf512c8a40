"""Proof that ranks start from one model: what no file holds (buffers, fresh adapters) is equal on all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import nn

from ..endings import Ended
from ..ranks import Ranks
from ..spec.faults import Reason


def check_equal(tensors: Mapping[str, torch.Tensor], ranks: Ranks, what: str) -> None:
    """Raise Ended on all ranks alike where one of `tensors` differs on some rank. All ranks must call."""
    told = ranks.gather({name: digest(tensor) for name, tensor in tensors.items()})
    for name in sorted(set().union(*told)):
        found = [theirs.get(name, "missing") for theirs in told]
        odd = [rank for rank, value in enumerate(found) if value != _most(found)]
        if odd:
            raise Ended(Reason.RANK_FAILED, f"{what} {name} on rank {odd[0]} differs from the other ranks'")


def _most(values: list[str]) -> str:
    """Return the commonest value, of equally common ones the first."""
    return max(values, key=values.count)


def digest(tensor: torch.Tensor) -> str:
    """Return a fingerprint of dtype, shape and bytes."""
    values = tensor.detach().cpu().contiguous().view(-1)
    head = f"{tensor.dtype} {list(tensor.shape)}".encode()
    return hashlib.sha256(head + memoryview(values.view(torch.uint8).numpy())).hexdigest()


def computed_buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers that no checkpoint holds, such as rotary frequencies."""
    return {
        f"{prefix}.{name}" if prefix else name: buffer
        for prefix, module in model.named_modules()
        for name, buffer in module._buffers.items()
        if buffer is not None and name in module._non_persistent_buffers_set
    }
