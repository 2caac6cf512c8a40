"""One forward pass of a model that is larger than memory: its weights are read while it runs, some rows at a time.

The model is made with its parameters on the meta device, where they take no memory, and run as it is. A torch function
mode stands between it and torch: a product with a weight, or a look-up in one, is put together from blocks of its rows,
and whatever else needs a weight gets all of it for as long as that one call takes. So it is the architecture's own
forward pass, whichever that is; peak memory is a few blocks and the largest tensor that is needed whole.

Each tensor's hash is taken on the way: two passes, of what was exported and of the checkpoint, compare every value too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM

from .blueprint import Blueprint
from .sheet import probe_ids
from .weights import Weights

LARGE = 1 << 16  # numbers; what is smaller may lie in memory while the model is made
Names = dict[int, str]


def logits(config: Any, plan: Blueprint, weights: Weights, dtype: torch.dtype, *, trust_remote_code: bool) -> Any:
    """Return the same logits as sheet.logits, by streaming.

    Raises MemoryError, or whatever torch raises, where this model's forward pass can't be run so.
    """
    with _on_meta():
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=trust_remote_code).eval()
    names = {id(p): plan.ties.get(n, n) for n, p in model.named_parameters(remove_duplicate=False)}
    for name, buffer in model.named_buffers():
        if name in weights.shapes:
            buffer.copy_(weights.whole(name))
        elif buffer.is_meta:
            raise NotImplementedError(f"the buffer {name} has no values of its own")
    ids = probe_ids(plan.shapes[names[id(model.get_input_embeddings().weight)]][0])
    with torch.inference_mode(), _Streaming(names, weights):
        return model(ids[None], use_cache=False).logits.float()


class _Streaming(TorchFunctionMode):
    def __init__(self, names: Names, weights: Weights):
        super().__init__()
        self.names, self.weights = names, weights

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "__get__":
            return self._property(func, args)
        if func in ABOUT:
            return func(*args, **kwargs)
        if func is functional.linear and self._name(args[1]):
            return self._linear(*args, **kwargs)
        if func is functional.embedding and self._name(args[1]) and self._plain(args, kwargs):
            return self._embedding(args[0], args[1])
        return func(*self._there(args), **self._there(kwargs))

    def _name(self, value: Any) -> str:
        return self.names.get(id(value), "") if isinstance(value, torch.Tensor) else ""

    def _plain(self, args: Any, kwargs: Any) -> bool:
        """Tell whether a look-up leaves the rows as they are: its fourth argument bounds their norm in place."""
        return (args[3] if len(args) > 3 else kwargs.get("max_norm")) is None

    def _property(self, func: Any, args: Any) -> Any:
        """A weight says of itself what it says, but that it is on the CPU: there it is when it is used."""
        if self._name(args[0]) and func is torch.Tensor.device.__get__:
            return torch.device("cpu")
        return func(*args)

    def _there(self, value: Any) -> Any:
        """Return `value` with each weight in it as it is stored, whole."""
        if name := self._name(value):
            return self.weights.whole(name)
        if isinstance(value, tuple | list):
            return type(value)(self._there(inner) for inner in value)
        return {k: self._there(v) for k, v in value.items()} if type(value) is dict else value

    def _linear(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        added, parts, row = self._there(bias), [], 0
        for block in self.weights.blocks(self._name(weight)):
            parts.append(functional.linear(x, block, None if added is None else added[row : row + len(block)]))
            row += len(block)
        return torch.cat(parts, -1)

    def _embedding(self, ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out, row = None, 0
        for block in self.weights.blocks(self._name(weight)):
            if out is None:
                out = block.new_empty(*ids.shape, block.shape[1])
            here = (ids >= row) & (ids < row + len(block))
            out[here] = block[ids[here] - row]
            row += len(block)
        assert out is not None
        return out


Tensor = torch.Tensor
# What asks about a tensor and needs none of its values.
ABOUT = {Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.stride, Tensor.__len__}


class _Unfilled(TorchFunctionMode):
    """Large tensors that are about to be filled are made on the meta device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty and prod(_extents(args)) > LARGE:
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)


def _extents(args: Any) -> Any:
    return args[0] if args and isinstance(args[0], tuple | list | torch.Size) else args


@contextmanager
def _on_meta() -> Iterator[None]:
    """Make parameters on the meta device; buffers, which hold what a config decides, get their values."""
    register = torch.nn.Module.register_parameter

    def put(module: torch.nn.Module, name: str, param: torch.nn.Parameter | None) -> None:
        away = None if param is None else torch.nn.Parameter(param.detach().to("meta"), requires_grad=False)
        register(module, name, param if param is not None and param.is_meta else away)

    torch.nn.Module.register_parameter = put
    try:
        with _Unfilled():
            yield
    finally:
        torch.nn.Module.register_parameter = register
