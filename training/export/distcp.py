"""Read the tensors of a distributed checkpoint, a bounded part of one at a time.

A checkpoint of torch.distributed.checkpoint is a `.metadata` file (a pickle that says which piece of which
tensor lies where) and `.distcp` files, in which every piece is a small torch.save of its own. The caller has
checked `.metadata` against the manifest's hash; even so it may name only the classes it is made of. Of a piece
only the numbers are read, at their offset.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import torch

from ..spec.lint import Problem
from .manifest import METADATA
from .outcome import Damaged
from .parts import BLOCK, Loaded, Part, Raw, row_blocks
from .shards.boxes import Box, before, is_run, makes_up, overlap, split, within
from .shards.checked import OTHER, Checked
from .shards.pieces import Piece, Shard

PREFIX = "model."  # accelerate saves {"model": state_dict}, which flattens to this prefix
ALLOWED = {
    "torch.distributed.checkpoint.metadata": {
        "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
        "TensorProperties", "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
}  # fmt: skip
# The path's class moved to a module of its own in Python 3.13, and back in 3.14.
PLAIN = {("collections", "OrderedDict"), ("builtins", "set"), ("pathlib", "PosixPath"), ("pathlib._local", "PosixPath")}


@dataclass(frozen=True)
class Stored:
    """One tensor as it was saved. `pieces` are in row order; `whole` is their shape where `shape` is less of it."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: tuple[Piece, ...]
    whole: tuple[int, ...] | None = None

    @property
    def extent(self) -> tuple[int, ...]:
        return self.whole or self.shape


class Checkpoint:
    """The tensors of one `pytorch_model_fsdp_0` folder, by the names that the model has for them.

    `files`: the folder's files with their hashes, to which is fed what is read; none where the caller has checked
    them already.
    """

    def __init__(self, folder: Path, files: Mapping[str, Checked] | None = None):
        self.folder, self.checked = folder, files
        metadata = _metadata(folder / METADATA)
        pieces = _pieces(metadata)
        self.tensors = {
            name.removeprefix(PREFIX): Stored(tuple(entry.size), entry.properties.dtype, pieces.get(name, ()))
            for name, entry in metadata.state_dict_metadata.items()
            if hasattr(entry, "chunks")
        }
        self._shards = {name: Shard(folder / name, self._checked(name)) for name in self.files()}

    def files(self) -> set[str]:
        """Return the names of all files that hold pieces."""
        return {piece.file for stored in self.tensors.values() for piece in stored.pieces}

    def _checked(self, name: str) -> Checked | None:
        if self.checked is None:
            return None
        if (found := self.checked.get(f"{self.folder.name}/{name}")) is None:
            raise _bad(f"names {name}, which is in no manifest")
        return found

    def cut(self, name: str, rows: int) -> None:
        """Take only the first `rows` rows of a tensor from now on."""
        stored = self.tensors[name]
        self.tensors[name] = replace(stored, shape=(rows, *stored.shape[1:]), whole=stored.extent)

    def begins(self, names: Iterable[str]) -> dict[str, int]:
        """Return from where on each file is needed for these tensors."""
        found: dict[str, int] = {}
        for piece in (piece for name in names for piece in self.tensors[name].pieces):
            found[piece.file] = min(piece.start, found.get(piece.file, piece.start))
        return {f"{self.folder.name}/{name}": start for name, start in found.items()}

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return the names as their tensors follow each other in the files, so that these are read front to back."""
        return sorted(names, key=lambda name: min((piece.start for piece in self.tensors[name].pieces), default=0))

    def parts(self, name: str, most: int = BLOCK) -> Iterator[Part]:
        """Yield the tensor's numbers as consecutive parts of at most `most` bytes, however it was sharded.

        Raises Damaged where pieces are missing or overlap.
        """
        stored = self.tensors[name]
        if sum(prod(piece.size) for piece in stored.pieces) != prod(stored.extent):
            raise _bad(f"{name}: the stored pieces do not make up the shape {list(stored.extent)}")
        for box in split(stored.shape, max(1, most // stored.dtype.itemsize)):
            yield Part(box.count, stored.dtype, partial(self._load, stored, box))

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield the tensor as consecutive blocks of rows; concatenated along dimension 0 they are all of it.

        Only one block, of about BLOCK bytes or one row, is in memory at a time.
        """
        return row_blocks(self.tensors[name], partial(self.parts, name))

    def _load(self, stored: Stored, box: Box, buffer: torch.Tensor) -> Loaded:
        """Return the numbers of `box`, in `buffer`, which may have any content before."""
        out = buffer[: box.count * stored.dtype.itemsize].view(stored.dtype)
        shares = [(piece, shared) for piece in stored.pieces if (shared := overlap(box, piece.box)) is not None]
        if not makes_up((shared for _, shared in shares), box):
            where = ", ".join(sorted({piece.file for piece, _ in shares}))
            raise _bad(f"{where}: pieces overlap or leave gaps at {list(box.offset)}")
        raws: list[Raw] = []
        for piece, shared in shares:
            raws += self._fill(out, box, shared, piece, stored.dtype)
        return Loaded(out, tuple(raws))

    def _fill(self, out: torch.Tensor, box: Box, shared: Box, piece: Piece, dtype: torch.dtype) -> list[Raw]:
        """Put what `piece` has of `box` into its place in `out`."""
        shard, at = self._shards[piece.file], before(shared, piece.box)
        if is_run(shared, box):
            begin = before(shared, box)
            return shard.read(piece, at, out[begin : begin + shared.count])
        apart = torch.empty(shared.count, dtype=dtype)
        raws = shard.read(piece, at, apart)
        out.view(box.size)[within(shared, box)] = apart.view(shared.size)
        return raws


def _bad(reason: str) -> Damaged:
    """Return the refusal of a checkpoint whose own description is not one that this reader knows."""
    return Damaged([Problem(METADATA, reason, OTHER)])


def _member(kind: Any, name: str) -> Any:
    """Return an enum's member: Python 3.11.0 to 3.11.3 pickles it as getattr(kind, name). Nothing else is looked up."""
    if not (isinstance(kind, type) and issubclass(kind, Enum)) or name not in kind.__members__:
        raise _bad(f"names {name} of {kind!r}, which no checkpoint needs")
    return kind[name]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in ALLOWED.get(module, ()):
            return super().find_class(module, name)
        if module == "torch" and (name == "Size" or isinstance(getattr(torch, name, None), torch.dtype)):
            return getattr(torch, name)
        if (module, name) in PLAIN:
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):
            return _member
        raise _bad(f"names {module}.{name}, which no checkpoint needs")


def _metadata(path: Path) -> Any:
    with path.open("rb") as file:
        try:
            return _Unpickler(file).load()
        except (pickle.UnpicklingError, EOFError, AttributeError, TypeError) as error:
            raise _bad(f"can't be read: {error}") from error


def _pieces(metadata: Any) -> dict[str, tuple[Piece, ...]]:
    places = {(index.fqn, tuple(index.offset or ())): info for index, info in metadata.storage_data.items()}
    out: dict[str, tuple[Piece, ...]] = {}
    for name, entry in metadata.state_dict_metadata.items():
        boxes = [(tuple(c.offsets), tuple(c.sizes)) for c in getattr(entry, "chunks", ())]
        out[name] = tuple(_piece(name, box, places) for box in sorted(boxes) if prod(box[1]))
    return out


def _piece(name: str, box: tuple[tuple[int, ...], tuple[int, ...]], places: dict[Any, Any]) -> Piece:
    info = places.get((name, box[0]))
    if info is None:
        raise _bad(f"{name}: no file holds its piece at {list(box[0])}")
    return Piece(*box, info.relative_path, info.offset, info.length)
