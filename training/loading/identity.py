"""Which model a folder holds: two fine-tunes of one architecture have files of the same names and sizes.

Hashed are the configuration, the index, each file's header, and a block in the middle of every tensor: some
megabytes of a large model, where reading it all would take as long as loading it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

from ..spec.lint import Refused
from .stored import INDEX, Stored, Unfit, read_header, weight_files

BLOCK = 4096  # bytes
BLOCKS = 64  # of a file whose tensors can't be told
CONFIG = "config.json"
CODE = "*.py"


def model_digest(folder: Path) -> str:
    """Return the hash of what says which model this is, 32 hex digits. Raises OSError, Refused."""
    parts = [config_digest(folder, code=False), weights_in(folder)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def config_digest(folder: Path, *, code: bool) -> str:
    """Return the hash of the model's configuration, and of the code it brings where that counts."""
    digest = hashlib.sha256((folder / CONFIG).read_bytes())
    for path in sorted(folder.glob(CODE)) if code else []:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def weights_in(folder: Path) -> dict[str, str]:
    """Return a hash for each file of weights, by its name, and for the index, whatever the format."""
    try:
        names = weight_files(folder)
    except Unfit:
        names = sorted(path.name for path in folder.glob("*.bin"))
    return {name: sampled(folder / name) for name in names} | index_in(folder)


def index_in(folder: Path) -> dict[str, str]:
    """Return the hash of the index by its name, if there is one."""
    path = folder / INDEX
    return {INDEX: hashlib.sha256(path.read_bytes()).hexdigest()} if path.is_file() else {}


def sampled(path: Path) -> str:
    """Return a hash of the file's size, its header and a block of each tensor. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        digest = hashlib.sha256(str(size).encode())
        for offset, length in _places(path, size):
            file.seek(offset)
            digest.update(file.read(length))
    return digest.hexdigest()


def _places(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of what is hashed."""
    try:
        tensors = list(read_header(path).values()) if path.suffix == ".safetensors" else []
    except Refused:  # loading will say so, where it is read at all
        tensors = []
    if not tensors:
        yield from ((size * n // BLOCKS, BLOCK) for n in range(BLOCKS))
        return
    yield 0, min(tensor.offset for tensor in tensors)
    yield from sorted(_middle(tensor) for tensor in tensors)


def _middle(tensor: Stored) -> tuple[int, int]:
    length = math.prod(tensor.shape) * tensor.dtype.itemsize
    return tensor.offset + max(0, length - BLOCK) // 2, min(length, BLOCK)
