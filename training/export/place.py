"""The result's folder: worked on as `<out>.partial`, renamed when it is proven."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .outcome import refuse


@dataclass(frozen=True)
class Written:
    """A finished file: its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def clear(out: Path) -> None:
    """Remove what an earlier, unfinished export left; raise Refused where a finished one is in the place."""
    if out.exists():
        raise refuse("out", f"{out} exists already", "Choose another name, or delete it first.")
    shutil.rmtree(partial(out), ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)


def partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


@contextmanager
def working(out: Path) -> Iterator[Path]:
    """Give the folder to write into. It gets its name when the block ends well and is removed when it doesn't."""
    folder = partial(out)
    folder.mkdir()
    try:
        yield folder
        settle(folder)
        folder.rename(out)
        _fsync(out.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settle(folder: Path) -> None:
    """Flush every file of `folder`, and the folder, to disk."""
    for path in [*folder.iterdir(), folder]:
        _fsync(path)


def record(path: Path) -> Written:
    """Return name, size and hash of a small file."""
    data = path.read_bytes()
    return Written(path.name, len(data), hashlib.sha256(data).hexdigest())


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
