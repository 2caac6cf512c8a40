"""FSDP2 on CPU: accelerate shards for accelerators only, and this makes it shard over gloo as well.

accelerate keeps the state of a CPU launch at MULTI_CPU although its FSDP2 path (fully_shard, RAM-efficient
loading, sharded saves) works without a GPU. So the state is set to FSDP with the plugin, right where
accelerate would have done it. It refuses to act where an accelerator is present: there nothing is amiss.
"""

from __future__ import annotations

from typing import Any

import torch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType

from .spec.lint import Problem, Refused


def accelerator_present() -> bool:
    """Tell whether torch sees a GPU or another accelerator here."""
    return torch.cuda.is_available() or (torch.accelerator.is_available() and torch.accelerator.device_count() > 0)


def shard_on_cpu() -> None:
    """Make every AcceleratorState of this process that gets an FSDP plugin shard on CPU.

    Call once, before any Accelerator exists. Raises Refused where an accelerator is present.
    """
    if accelerator_present():
        raise Refused(
            [Problem("use_cpu", "this node has an accelerator, so FSDP needs no help", "Set use_cpu to false.")]
        )
    original = AcceleratorState.__init__

    def with_fsdp(self: Any, *args: Any, fsdp_plugin: Any = None, **kwargs: Any) -> None:
        original(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
            _to_fsdp(self, fsdp_plugin)

    AcceleratorState.__init__ = with_fsdp


def _to_fsdp(state: Any, plugin: Any) -> None:
    if plugin.fsdp_version != 2:
        raise Refused([Problem("fsdp.version", "FSDP1 needs a GPU and this node has none", "Set it to 2.")])
    state.distributed_type = DistributedType.FSDP
    PartialState._shared_state["distributed_type"] = DistributedType.FSDP
    if state._mixed_precision != "no":
        plugin.set_mixed_precision(state._mixed_precision)
    state.fsdp_plugin = plugin
