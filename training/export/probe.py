"""How fast this place reads, writes and hashes: a small honest trial where the export will work."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..spec.exportplan import Rates

PROBE = 64 << 20
BLOCK = 4 << 20
SPARE = 8  # a disk with less room than this many probes is not written to
LEAST = 1 << 20  # bytes; of fewer no rate follows

Clock = Callable[[], float]


def rates(place: Path, shard: Path | None, size: int = PROBE, clock: Clock = time.monotonic) -> Rates:
    """Return what `size` bytes took: written below `place` with a flush, read from `shard`, hashed both ways."""
    may = os.access(place, os.W_OK) and _free(place) > SPARE * size
    write = _write(place, size, clock) if may else 0.0
    read = _read(shard, size, clock) if shard and shard.is_file() else 0.0
    return Rates(read=read, write=write, probed=size)


def existing(path: Path) -> Path:
    """Return `path`, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if os.path.isdir(folder))  # Path's raises on a name too long


def _free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _write(place: Path, size: int, clock: Clock) -> float:
    block = os.urandom(BLOCK)  # a file system that packs or joins zeros would flatter itself
    digest, begin = hashlib.sha256(), clock()
    with tempfile.TemporaryFile(dir=place) as file:
        for _ in range(size // BLOCK):
            file.write(block)
            digest.update(block)
        file.flush()
        os.fsync(file.fileno())
    return size // BLOCK * BLOCK / max(1e-6, clock() - begin)


def _read(shard: Path, size: int, clock: Clock) -> float:
    digest, done = hashlib.sha256(), 0
    with shard.open("rb") as file:
        with suppress(OSError, AttributeError):  # what lies in memory already says nothing of the disk
            os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
        begin = clock()
        while done < size and (block := file.read(BLOCK)):
            digest.update(block)
            done += len(block)
        took = clock() - begin
    return done / max(1e-6, took) if done >= LEAST else 0.0
