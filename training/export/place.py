"""The result's folder: worked on as `<out>.partial`, renamed when it is proven. One export at a time is in it.

A killed export leaves the folder, with the record of what is on the disk; one that ends in any other way removes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..spec.folder import partial_name
from . import record
from .outcome import refuse

LOCK = ".export.lock"
OWN = (LOCK, record.NAME, f"{record.NAME}.tmp")  # never part of the result


@dataclass(frozen=True)
class Written:
    """A finished file: its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def partial(out: Path) -> Path:
    return out.with_name(partial_name(out.name))


class Work:
    """A folder that this process alone works in."""

    def __init__(self, out: Path, folder: Path):
        self.out, self.folder = out, folder
        self.ledger: record.Ledger

    def go_on(self, fingerprint: str) -> dict[str, record.Durable]:
        """Return what the same job left here on the disk; what another one left is removed."""
        found = record.read(self.folder)
        same = found is not None and found.fingerprint == fingerprint
        kept = found if found and same else record.Record(fingerprint=fingerprint)
        for path in self.folder.iterdir():
            if path.name not in (LOCK, *kept.files):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.ledger = record.Ledger(self.folder, kept)
        self.ledger.start()
        return dict(kept.files)

    def settle(self, exported: dict[str, Any]) -> None:
        """Give the folder its name; what it holds is flushed to the disk before."""
        settle(self.folder)
        self.ledger.proven(exported)
        self.folder.rename(self.out)
        self.folder = self.out
        _fsync(self.out.parent)

    def told(self) -> None:
        """Remove what only a killed export needs, now that this one's end has been told."""
        for name in OWN:
            (self.out / name).unlink(missing_ok=True)


def untold(out: Path) -> bool:
    """Tell whether the export that wrote `out` may not have told its end."""
    return (out / record.NAME).exists()


def proven(out: Path, fingerprint: str) -> dict[str, Any] | None:
    """Return what an export that was killed right after its folder got its name had still to tell."""
    found = record.read(out)
    return found.exported if found and found.fingerprint == fingerprint else None


@contextmanager
def working(out: Path) -> Iterator[Work]:
    """Give the folder to work in, and remove it where the block ends otherwise than by `settle`.

    Raises Refused where a result is in the place, or another process at work.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = partial(out)
    lock = _lock(out, folder)
    work = Work(out, folder)
    try:
        yield work
    finally:
        if work.folder == folder:
            _remove(folder)
        os.close(lock)


def refuse_existing(out: Path) -> None:
    """Raise Refused where something is in the result's place."""
    if out.exists():
        raise refuse("out", f"{out} exists already", "Choose another name, or delete it first.")


def _lock(out: Path, folder: Path) -> int:
    """Return the open lock of `folder`, which is made if need be."""
    while True:
        refuse_existing(out)
        folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # the one before us has just ended and removed the folder
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), (folder / LOCK).stat()):
                    return lock
            except BlockingIOError:
                os.close(lock)
                raise refuse(
                    "out", f"another export is writing {out} now", "Wait for its end, or choose another name."
                ) from None
            except FileNotFoundError:
                pass
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove the folder; its lock last, so that nobody begins in it before."""
    for path in folder.iterdir():
        if path.name != LOCK:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # another one has begun in it
        folder.rmdir()


def results(folder: Path) -> list[Path]:
    """Return the files of the result in `folder`, by name."""
    return sorted(path for path in folder.iterdir() if path.name not in OWN)


def settle(folder: Path) -> None:
    """Flush every file of `folder`, and the folder, to disk."""
    for path in [*folder.iterdir(), folder]:
        _fsync(path)


def facts(path: Path) -> Written:
    """Return name, size and hash of a small file."""
    data = path.read_bytes()
    return Written(path.name, len(data), hashlib.sha256(data).hexdigest())


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
