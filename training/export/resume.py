"""What an export that was killed left, and is taken over: read again, and compared with what it noted of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .layout import File
from .place import Written
from .record import Durable

BLOCK = 1 << 22


@dataclass(frozen=True)
class Kept:
    """The first `size` bytes of a file, which `digest` has; `written` where that is all of it."""

    size: int
    digest: hashlib._Hash
    written: Written | None


def verified(
    files: Iterable[File], durable: Mapping[str, Durable], folder: Path, on_bytes: Callable[[int], None]
) -> dict[str, Kept]:
    """Return what can be kept; the rest of `folder`'s weights is written anew."""
    with ThreadPoolExecutor(2) as pool:
        found = {
            file.name: pool.submit(_verified, file, durable[file.name], folder / file.name, on_bytes)
            for file in files
            if file.name in durable
        }
        return {name: kept for name, future in found.items() if (kept := future.result()) is not None}


def _verified(file: File, noted: Durable, path: Path, on_bytes: Callable[[int], None]) -> Kept | None:
    """Return None where it isn't what was noted, or begins otherwise than the file that is to be written."""
    digest, left = hashlib.sha256(), noted.size
    try:
        with path.open("rb") as opened:
            if opened.read(len(file.header)) != file.header:
                return None
            opened.seek(0)
            while left and (block := opened.read(min(BLOCK, left))):
                digest.update(block)
                left -= len(block)
                on_bytes(len(block))
    except FileNotFoundError:
        return None
    if left or digest.hexdigest() != noted.sha256:
        return None
    whole = Written(file.name, noted.size, noted.sha256) if noted.size == file.size else None
    return Kept(noted.size, digest, whole)
