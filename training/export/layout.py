"""PURE: which tensor goes where in which safetensors file.

A safetensors file is 8 bytes (little-endian length of the header), the header as JSON, and the tensors' bytes
one after the other. Shapes and dtypes are known beforehand, so the header can be written before any tensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
ALIGNMENT = 8


@dataclass(frozen=True)
class Item:
    """One tensor to write: its name, safetensors dtype code (BF16, F16, F32, I64, ...), shape and bytes."""

    name: str
    code: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class File:
    """One safetensors file, its tensors in the order of their bytes."""

    name: str
    items: tuple[Item, ...]

    @cached_property
    def header(self) -> bytes:
        """Everything before the first tensor."""
        entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
        at = 0
        for item in self.items:
            entries[item.name] = {"dtype": item.code, "shape": item.shape, "data_offsets": [at, at + item.size]}
            at += item.size
        text = json.dumps(entries, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        return len(text).to_bytes(8, "little") + text

    @property
    def size(self) -> int:
        return len(self.header) + sum(item.size for item in self.items)


def plan(items: Iterable[Item], max_bytes: int) -> list[File]:
    """Fill files in order up to `max_bytes` of tensors each; a tensor larger than that has a file of its own."""
    groups: list[list[Item]] = [[]]
    used = 0
    for item in items:
        if groups[-1] and used + item.size > max_bytes:
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += item.size
    if len(groups) == 1:
        return [File(SINGLE, tuple(groups[0]))]
    count = len(groups)
    return [File(f"model-{i:05d}-of-{count:05d}.safetensors", tuple(g)) for i, g in enumerate(groups, 1)]


def index(files: Iterable[File]) -> str:
    """Return model.safetensors.index.json: which file holds which tensor."""
    places = {item.name: file for file in files for item in file.items}
    total = sum(item.size for file in set(places.values()) for item in file.items)
    weights = {name: file.name for name, file in sorted(places.items())}
    return json.dumps({"metadata": {"total_size": total}, "weight_map": weights}, indent=2) + "\n"
