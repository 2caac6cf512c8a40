"""The sharded state of model and optimizer, named as accelerate names it, so that its loading reads ours."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from accelerate.utils import is_peft_model
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
)
from torch.distributed.fsdp import FullyShardedDataParallel

from ..adapters import state as adapter

MODEL = "pytorch_model_fsdp_0"
OPTIMIZER = "optimizer_0"


def sharded(model: Any, optimizer: Any, plugin: Any) -> dict[str, dict[str, Any]]:
    """Return what each folder of a checkpoint holds of this rank. Nothing is copied: the tensors are the live ones."""
    with _kind(model, plugin):
        return {MODEL: {"model": _weights(model, plugin)}, OPTIMIZER: {"optimizer": _moments(model, optimizer, plugin)}}


def _kind(model: Any, plugin: Any) -> AbstractContextManager[Any]:
    """FSDP1 is told by a context which kind of state is wanted; FSDP2 by options."""
    if plugin.fsdp_version == 2:
        return nullcontext()
    kind: AbstractContextManager[Any] = FullyShardedDataParallel.state_dict_type(
        model, plugin.state_dict_type, plugin.state_dict_config, plugin.optim_state_dict_config
    )
    return kind


def _weights(model: Any, plugin: Any) -> Any:
    if is_peft_model(model):
        return adapter.trained(model)
    return get_model_state_dict(model, options=StateDictOptions()) if plugin.fsdp_version == 2 else model.state_dict()


def _moments(model: Any, optimizer: Any, plugin: Any) -> Any:
    if plugin.fsdp_version == 2:
        return get_optimizer_state_dict(model, optimizer, options=StateDictOptions())
    return FullyShardedDataParallel.optim_state_dict(model, optimizer)
