"""The gradient before it moves weights: its norm, exact however it is sharded, clipped, and left out if not finite.

torch adds up a tensor's squares in the tensor's own format, on CPU in one row: for the gradient of an embedding of
a million numbers the fourth digit is off, and off otherwise on two ranks than on one. In double it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from trl import SFTTrainer

from .watch.brake import Brake

EPSILON = 1e-6  # as in torch's own clipping


class Clipped(SFTTrainer):
    """SFTTrainer that clips so, and shows a Brake whether the gradient was finite.

    A gradient that isn't moves nothing: weights and moments stay as they are and the next step has its chance. Under
    fp16 the loss scaler does that, looking for the scale, and such steps are no sign of trouble.
    """

    def __init__(self, *, brake: Brake, **settings: Any):
        super().__init__(**settings)
        self.brake = brake

    def _clip_grad_norm(self, model: torch.nn.Module) -> torch.Tensor:
        norm = self._clipped(model)
        if self.accelerator.scaler is None:
            finite = bool(torch.isfinite(norm))
            self.brake.saw(finite)
            self.brake.left_out = not finite
            if not finite:
                model.zero_grad(set_to_none=True)  # an optimizer passes over what has no gradient
        return norm

    def _clipped(self, model: torch.nn.Module) -> torch.Tensor:
        if not self.accelerator.is_fsdp2:
            norm: torch.Tensor = super()._clip_grad_norm(model)  # FSDP1's own knows its flat parameters
            return norm
        self.accelerator.unscale_gradients()
        return clip(model.parameters(), self.args.max_grad_norm)


def clip(parameters: Iterable[torch.nn.Parameter], most: float) -> torch.Tensor:
    """Scale all gradients so that their common L2 norm is at most `most`; return the norm before.

    Each is a tensor, the same on all ranks, or a DTensor, sharded over one mesh. All ranks must call, and get the
    same.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = total_norm(gradients)
    scale = (most / (norm + EPSILON)).clamp(max=1.0)
    for gradient in gradients:
        _local(gradient).mul_(scale)
    return norm.float()


def total_norm(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the L2 norm of all gradients together, added up in double; a scalar."""
    sharded = [gradient for gradient in gradients if isinstance(gradient, DTensor)]
    squares = _squares(g for g in gradients if not isinstance(g, DTensor))
    if sharded:
        (mesh,) = {gradient.device_mesh for gradient in sharded}
        assert all(placement.is_shard() for gradient in sharded for placement in gradient.placements)
        mine = torch.as_tensor(_squares(sharded), dtype=torch.float64, device=_local(sharded[0]).device)
        dist.all_reduce(mine, group=mesh.get_group())
        squares = squares + mine
    return torch.as_tensor(squares, dtype=torch.float64).sqrt()


def _squares(gradients: Iterable[torch.Tensor]) -> torch.Tensor | float:
    return sum((torch.linalg.vector_norm(_local(g), dtype=torch.float64) ** 2 for g in gradients), 0.0)


def _local(gradient: torch.Tensor) -> torch.Tensor:
    """Return this rank's part."""
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient
