"""The tensors in an exported folder, as its safetensors files have them. They are read at offsets, never mapped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from .parts import BLOCK, Loaded, Part, row_blocks
from .shards.boxes import Box, before, split
from .tensorfile import Entry, TensorFile


class WrittenTensors:
    """`tensors` by name, `places`: the file of each; `twice`: names that more than one file has."""

    def __init__(self, folder: Path):
        self.files = {path.name: TensorFile(path) for path in sorted(folder.glob("*.safetensors"))}
        self.tensors: dict[str, Entry] = {}
        self.places: dict[str, str] = {}
        self.twice: list[str] = []
        for file, opened in self.files.items():
            self.twice += sorted(self.tensors.keys() & opened.tensors.keys())
            self.tensors |= opened.tensors
            self.places |= dict.fromkeys(opened.tensors, file)

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield a tensor as consecutive blocks of rows."""
        return row_blocks(self.tensors[name], partial(self._parts, name))

    def _parts(self, name: str, most: int = BLOCK) -> Iterator[Part]:
        entry = self.tensors[name]
        whole = Box((0,) * len(entry.shape), entry.shape)
        for box in split(entry.shape, max(1, most // entry.dtype.itemsize)):
            yield Part(box.count, entry.dtype, partial(self._load, name, before(box, whole)))

    def _load(self, name: str, start: int, buffer: torch.Tensor) -> Loaded:
        return Loaded(self.files[self.places[name]].read(name, start, buffer.view(self.tensors[name].dtype)))
