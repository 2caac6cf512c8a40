"""Write safetensors files from front to back out of a source, a few parts in memory at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..progress import Meter
from ..spec.faults import Reason
from .blueprint import Blueprint
from .distcp import Stored
from .flow import Flow, Slot, Step
from .layout import File, Item
from .outcome import Failure
from .output import Output
from .parts import Loaded, Part
from .place import Work, Written
from .tensorfile import CODES

if TYPE_CHECKING:  # source reads what this writes
    from .resume import Kept
    from .source import Source

__all__ = ["CODES", "check_ties", "item", "target_dtype", "write"]


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


def write(
    files: Sequence[File], source: Source, work: Work, chosen: torch.dtype, kept: Mapping[str, Kept], meter: Meter
) -> list[Written]:
    """Write what is not `kept` of the files and flush it. Raises Failure for a value that is not finite in `chosen`."""
    whole = {name: done.written for name, done in kept.items() if done.written is not None}
    due = [file for file in files if file.name not in whole]
    steps = (step for file in due for step in _steps(file, source, work.folder, chosen, kept.get(file.name)))
    new = {file.name: file for file in Flow(work.ledger, meter.add).run(steps)}
    return [(whole | new)[file.name] for file in files]


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


def _steps(file: File, source: Source, folder: Path, chosen: torch.dtype, kept: Kept | None) -> Iterator[Step]:
    """Yield the steps of one file, its end included. What is kept ends where a part does."""
    output = Output(file, folder, kept.size if kept else 0, kept.digest if kept else hashlib.sha256())
    at = len(file.header)
    if output.kept < at:
        yield Step(output, partial(_header, file))
    for entry in file.items:
        dtype = target_dtype(source.tensors[entry.name], chosen)
        for part in source.parts(entry.name):
            at += part.count * dtype.itemsize
            if at > output.kept:
                yield Step(output, partial(_converted, entry.name, part, dtype))
    yield Step(output)


def _header(file: File, slot: Slot) -> Loaded:
    return Loaded(torch.frombuffer(bytearray(file.header), dtype=torch.uint8))


def _converted(name: str, part: Part, dtype: torch.dtype, slot: Slot) -> Loaded:
    """Load a part and convert it; raise Failure where a value is not finite."""
    raw = slot.raw if slot.raw.nbytes >= part.bytes else torch.empty(part.bytes, dtype=torch.uint8)
    loaded = part.load(raw)
    numbers = loaded.numbers
    if numbers.dtype != dtype:
        numbers = slot.room(numbers.numel() * dtype.itemsize).view(dtype).copy_(numbers)
    if not _finite(numbers):
        raise _not_finite(name, loaded.numbers, dtype)
    return Loaded(numbers, loaded.raws)


def _not_finite(name: str, before: torch.Tensor, dtype: torch.dtype) -> Failure:
    if _finite(before):
        largest = float(before.abs().max())
        why = f"holds values up to {largest:g}, too large for {dtype}; export as bfloat16 or float32"
    else:
        why = "holds values that are not finite; export an earlier checkpoint"
    return Failure(Reason.PROOF, f"finite: {name} {why}")


def _finite(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    # one pass and no mask of the tensor's size; NaN comes through as both
    return all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(tensor))
