"""Read the tensors of a distributed checkpoint one stored piece at a time.

A checkpoint of torch.distributed.checkpoint is a `.metadata` file (a pickle that says which piece of which
tensor lies where) and `.distcp` files, in which every piece is a small torch.save of its own. The caller has
checked both against the manifest's hashes; even so `.metadata` may name only the classes it is made of,
and pieces are loaded weights-only.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ..spec.lint import Problem
from .manifest import METADATA, OTHER
from .outcome import Damaged

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
class Piece:
    """A box of a tensor: where it starts, its extent, and the bytes in a file that hold it."""

    offset: tuple[int, ...]
    size: tuple[int, ...]
    file: str
    start: int
    length: int


@dataclass(frozen=True)
class Stored:
    """One tensor as it was saved. `pieces` are in row order."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: tuple[Piece, ...]

    @property
    def by_rows(self) -> bool:
        """True where the pieces follow each other along the first dimension and leave no gap."""
        row = 0
        for piece in self.pieces:
            if piece.offset[1:] != (0,) * (len(self.shape) - 1) or piece.size[1:] != self.shape[1:]:
                return False
            if piece.offset[0] != row:
                return False
            row += piece.size[0]
        return row == self.shape[0]


class Checkpoint:
    """The tensors of one `pytorch_model_fsdp_0` folder, by the names that the model has for them."""

    def __init__(self, folder: Path):
        self.folder = folder
        metadata = _metadata(folder / METADATA)
        pieces = _pieces(metadata)
        self.tensors = {
            name.removeprefix(PREFIX): Stored(tuple(entry.size), entry.properties.dtype, pieces.get(name, ()))
            for name, entry in metadata.state_dict_metadata.items()
            if hasattr(entry, "chunks")
        }

    def files(self) -> set[str]:
        """Return the names of all files that hold pieces."""
        return {piece.file for stored in self.tensors.values() for piece in stored.pieces}

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield the tensor as consecutive blocks of rows; concatenated along dimension 0 they are all of it.

        Only one block is in memory at a time. A tensor that was not sharded by rows comes as one block.
        Raises Damaged where pieces are missing or overlap.
        """
        stored = self.tensors[name]
        if stored.shape and stored.by_rows:
            yield from (self._load(piece, stored) for piece in stored.pieces)
        else:
            yield self._assembled(name, stored)

    def _assembled(self, name: str, stored: Stored) -> torch.Tensor:
        if sum(prod(piece.size) for piece in stored.pieces) != prod(stored.shape):
            raise _bad(f"{name}: the stored pieces do not make up the shape {list(stored.shape)}")
        whole = torch.empty(stored.shape, dtype=stored.dtype)
        for piece in stored.pieces:
            box = tuple(slice(o, o + s) for o, s in zip(piece.offset, piece.size, strict=True))
            whole[box] = self._load(piece, stored)
        return whole

    def _load(self, piece: Piece, stored: Stored) -> torch.Tensor:
        with (self.folder / piece.file).open("rb") as file:
            window = Window(file, piece.start, piece.length)
            tensor: torch.Tensor = torch.load(window, map_location="cpu", weights_only=True)
        if tuple(tensor.shape) != piece.size or tensor.dtype != stored.dtype:
            raise _bad(f"{piece.file} at {piece.start}: holds {tensor.dtype} {list(tensor.shape)}")
        return tensor


class Window(io.RawIOBase):
    """The bytes [start, start + length) of an open file as a file of their own: no copy of a large piece."""

    def __init__(self, file: BinaryIO, start: int, length: int):
        self.file, self.start, self.length, self.at = file, start, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}[whence]
        self.at = base + offset
        return self.at

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")[: max(0, self.length - self.at)]
        self.file.seek(self.start + self.at)
        count = self.file.readinto(view)  # type: ignore[attr-defined]
        self.at += count
        return int(count)


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
