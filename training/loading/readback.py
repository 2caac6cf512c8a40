"""What is really in force when the model is sharded: read off the wrapped modules, not off the recipe."""

from __future__ import annotations

import resource
from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

from ..ranks import Ranks

KIB = 1024


def sharding(model: nn.Module) -> dict[str, Any]:
    """Return compute_dtype, reduce_dtype (names such as `bfloat16`, several joined), units and wrapped.

    `units`: how many groups of parameters are gathered as one. `wrapped`: modules that are sharded as units or
    parts of one, counted by class.
    """
    found = [module for module in model.modules() if _is_unit(module)]
    formats = [_formats(module) for module in found]
    return {
        "compute_dtype": _joined({compute for compute, _ in formats}),
        "reduce_dtype": _joined({reduce for _, reduce in formats}),
        "units": len({id(_state(module)) for module in found}),
        "wrapped": dict(Counter(map(_class_name, found))),
    }


def _is_unit(module: nn.Module) -> bool:
    """Whether parameters are gathered at this module; accelerate also wraps what checkpoints a layer."""
    if isinstance(module, FullyShardedDataParallel):
        return bool(module._handle)
    return isinstance(module, FSDPModule) and bool(module._get_fsdp_state()._fsdp_param_groups)


def _state(module: Any) -> Any:
    """Return what modules of one unit share. torch has setters alone for most of it."""
    return module if isinstance(module, FullyShardedDataParallel) else module._get_fsdp_state()


def _formats(module: Any) -> tuple[torch.dtype, torch.dtype]:
    """Return the number formats of a unit's gathered weights and of its gradients' sum."""
    own = next(module.parameters()).dtype
    state = _state(module)
    policy = state.mixed_precision if isinstance(module, FullyShardedDataParallel) else state._mp_policy
    compute = (policy and policy.param_dtype) or own
    return compute, (policy and policy.reduce_dtype) or compute


def _class_name(module: Any) -> str:
    """Return the class that the model's author wrote: under FSDP's own and a checkpointing wrapper's name."""
    if isinstance(module, FullyShardedDataParallel):
        module = module.module
    inner = getattr(module, "_checkpoint_wrapped_module", module)
    if isinstance(inner, FSDPModule):
        return type(inner).__mro__[2].__name__
    return type(inner).__name__


def _joined(dtypes: set[torch.dtype]) -> str:
    return ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))


def peak_ram(ranks: Ranks) -> list[int]:
    """Return every rank's most resident host memory so far, in bytes, by rank. All ranks must call."""
    return ranks.gather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB)
