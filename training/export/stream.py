"""Write safetensors files from front to back, one stored piece in memory at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..spec.faults import Reason
from .blueprint import Blueprint
from .distcp import Stored
from .layout import File, Item
from .outcome import Failure
from .place import Written

if TYPE_CHECKING:  # source reads what this writes
    from .source import Source

CODES = {
    torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32", torch.float64: "F64", torch.bool: "BOOL",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
}  # fmt: skip


def target_dtype(stored: Stored, chosen: torch.dtype) -> torch.dtype:
    """Return what a tensor is written in: floating point as chosen, counters and masks as they are."""
    return chosen if stored.dtype.is_floating_point else stored.dtype


def item(name: str, stored: Stored, chosen: torch.dtype) -> Item:
    """Return the layout entry of a stored tensor."""
    dtype = target_dtype(stored, chosen)
    count = 1
    for extent in stored.shape:
        count *= extent
    return Item(name, CODES[dtype], stored.shape, count * dtype.itemsize)


def write(file: File, source: Source, folder: Path, chosen: torch.dtype, on_bytes: Callable[[int], None]) -> Written:
    """Write one file and flush it to disk. Raises Failure for a value that is not finite in `chosen`."""
    digest = hashlib.sha256()
    with (folder / file.name).open("xb") as out:
        for data in _bytes(file, source, chosen):
            out.write(data)
            digest.update(data)
            on_bytes(len(data))
            del data  # or two pieces would be in memory while the next one is read
        out.flush()
        os.fsync(out.fileno())
        size = out.tell()
    assert size == file.size, f"{file.name}: {size} bytes were written, {file.size} were planned"
    return Written(file.name, size, digest.hexdigest())


def check_ties(plan: Blueprint, source: Source) -> None:
    """Raise Failure where a tensor that the config ties to another was saved with other values."""
    for tied, kept in plan.ties.items():
        if tied not in source.tensors:
            continue
        pairs = zip_longest(source.blocks(tied), source.blocks(kept))
        if not all(a is not None and b is not None and torch.equal(a, b) for a, b in pairs):
            raise Failure(
                Reason.PROOF,
                f"ties: the config ties {tied} to {kept}, but the checkpoint holds different values for them",
            )


def _bytes(file: File, source: Source, chosen: torch.dtype) -> Iterator[memoryview]:
    yield memoryview(file.header)
    for entry in file.items:
        dtype = target_dtype(source.tensors[entry.name], chosen)
        yield from (_raw(_converted(entry.name, block, dtype)) for block in source.blocks(entry.name))


def _converted(name: str, block: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    converted = block.to(dtype)
    if _finite(converted):
        return converted
    if _finite(block):
        largest = float(block.abs().max())
        why = f"holds values up to {largest:g}, too large for {converted.dtype}; export as bfloat16 or float32"
    else:
        why = "holds values that are not finite; export an earlier checkpoint"
    raise Failure(Reason.PROOF, f"finite: {name} {why}")


def _finite(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    # one pass and no mask of the tensor's size; NaN comes through as both
    return all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(tensor))


def _raw(tensor: torch.Tensor) -> memoryview:
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())
