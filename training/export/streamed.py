"""One forward pass of a model that is larger than memory: its weights are read while it runs, some rows at a time.

The model is made with its parameters on the meta device, where they take no memory, and run as it is. A torch function
mode stands between it and torch: a product with a weight, or a look-up in one, is put together from blocks of its rows,
and whatever else needs a weight gets all of it for as long as that one call takes. So it is the architecture's own
forward pass, whichever that is; peak memory is a few blocks and the largest tensor that is needed whole.

Each tensor's hash is taken on the way: two passes, of what was exported and of the checkpoint, compare every value too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM

from .blueprint import Blueprint
from .sheet import LOGITS, probe_ids

ROWS_OF = 1 << 22  # numbers in a block of rows
LARGE = 1 << 16  # numbers; what is smaller may lie in memory while the model is made
Names = dict[int, str]


class Weights:
    """Tensors by the names they are stored under, from front to back in the same blocks whoever holds them.

    `read`: yields a tensor as consecutive rows, in blocks as they come. `shapes`: by name. `most`: bytes that one
    tensor may take in memory.
    """

    def __init__(self, read: Callable[[str], Iterable[torch.Tensor]], shapes: dict[str, tuple[int, ...]], most: int):
        self.read, self.shapes, self.most = read, shapes, most
        self.hashes: dict[str, str] = {}
        self.not_finite: set[str] = set()

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield blocks of the tensor's rows, all but the last of one size; one without rows as it is."""
        shape = self.shapes[name]
        rows = max(1, ROWS_OF // max(1, prod(shape[1:]))) if shape else 1
        digest = hashlib.sha256()
        for block in _regrouped(self.read(name), rows) if shape else self.read(name):
            digest.update(memoryview(block.contiguous().reshape(-1).view(torch.uint8).numpy()))
            if block.is_floating_point() and not all(map(torch.isfinite, torch.aminmax(block))):
                self.not_finite.add(name)
            yield block
        self.hashes[name] = digest.hexdigest()

    def whole(self, name: str) -> torch.Tensor:
        """Return all of a tensor; raise MemoryError where that is too much."""
        size = 4 * prod(self.shapes[name])
        if size > self.most:
            raise MemoryError(f"{name} is needed whole, which takes {size:,} bytes")
        blocks = list(self.blocks(name))
        return torch.cat(blocks) if self.shapes[name] else blocks[0]

    def finish(self, names: Iterable[str]) -> None:
        """Read what the forward pass had no use for."""
        for name in names:
            if name not in self.hashes:
                for _ in self.blocks(name):
                    pass


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
        return model(ids, use_cache=False, **LOGITS).logits.float()


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
        if func is functional.embedding and self._name(args[1]) and not any(kwargs.get(k) for k in ("max_norm",)):
            return self._embedding(args[0], args[1])
        return func(*self._there(args), **self._there(kwargs))

    def _name(self, value: Any) -> str:
        return self.names.get(id(value), "") if isinstance(value, torch.Tensor) else ""

    def _property(self, func: Any, args: Any) -> Any:
        """A weight says of itself what it says, but that it is on the CPU: there it is when it is used."""
        if self._name(args[0]) and func is torch.Tensor.device.__get__:  # type: ignore[attr-defined]
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


def _regrouped(blocks: Iterable[torch.Tensor], rows: int) -> Iterator[torch.Tensor]:
    """Yield the same rows, `rows` at a time: torch may add up in another order where a block has another size."""
    held: list[torch.Tensor] = []
    count = 0
    for block in blocks:
        while len(block):
            taken = block[: rows - count]
            held.append(taken)
            count += len(taken)
            block = block[len(taken) :]
            if count == rows:
                yield torch.cat(held) if len(held) > 1 else held[0]
                held, count = [], 0
    if held:
        yield torch.cat(held)


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

    torch.nn.Module.register_parameter = put  # type: ignore[method-assign]
    try:
        with _Unfilled():
            yield
    finally:
        torch.nn.Module.register_parameter = register  # type: ignore[method-assign]
