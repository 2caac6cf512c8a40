"""A model without weights: parameters that nobody has written to yet, buffers as the model computes them itself.

Not on `meta`: accelerate tells the optimizer's parameters apart by their addresses, which are all 0 there, and the
model would train on wrong weights without a word. Memory that torch.empty got and nobody has touched takes no room.
"""

from __future__ import annotations

from typing import Any

import torch
from accelerate import init_empty_weights
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel


def empty_model(config: Any, *, dtype: torch.dtype, attention: str, remote_code: bool = False) -> PreTrainedModel:
    """Return the model of `config` on the host, tied as it says, its parameters' values undefined."""
    with init_empty_weights(include_buffers=False):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=attention, trust_remote_code=remote_code
        )
    model.tie_weights()
    _take_memory(model)
    return model.eval()


def _take_memory(model: nn.Module) -> None:
    """Put untouched memory in the place of every parameter, one for all places of a tied one."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            assert parameter.is_meta, name
            if id(parameter) not in made:
                empty = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
                made[id(parameter)] = nn.Parameter(empty, requires_grad=parameter.requires_grad)
            module._parameters[name] = made[id(parameter)]
