"""The result's folder: worked on as `<out>.partial`, renamed when it is proven. One export at a time is in it.

An export that was killed, stopped or had no room leaves the folder, with the record of what is on the disk, for the
next start to go on from; one whose job, checkpoint or result was found wrong removes it (outcome.may_go_on).
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

from ..durable import sync
from ..spec.folder import partial_name
from ..spec.lint import Problem
from . import record
from .outcome import Denied, may_go_on, reason_of, refuse

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
        self.out, self.folder, self.begun = out, folder, False
        self.ledger: record.Ledger

    def go_on(self, fingerprint: str) -> dict[str, record.Durable]:
        """Return what the same job left here on the disk; what another one left is removed."""
        found = record.read(self.folder)
        same = found is not None and found.fingerprint == fingerprint
        kept = found if found and same else record.Record(fingerprint=fingerprint)
        self.begun = True
        for path in self.folder.iterdir():
            if path.name not in (LOCK, *kept.files):
                _remove_one(path)
        self.ledger = record.Ledger(self.folder, kept)
        self.ledger.start()
        return dict(kept.files)

    def settle(self, exported: dict[str, Any]) -> None:
        """Give the folder its name; what it holds is flushed to the disk before."""
        settle(self.folder)
        self.ledger.proven(exported)
        self.folder.rename(self.out)
        self.folder = self.out
        sync(self.out.parent)

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
    """Give the folder to work in. Where the block ends otherwise than by `settle` the folder is removed, unless the
    error leaves it worth going on from, and something of it is on the disk for sure.

    Raises Refused where a result is in the place, or another process at work. What a killed export left is not touched
    before `go_on`: a job that is refused earlier has no say in it.
    """
    check(out)
    _make(out.parent)
    folder = partial(out)
    lock = _lock(out, folder)
    work, keep = Work(out, folder), False
    try:
        yield work
    except BaseException as error:
        found = record.read(folder)
        keep = may_go_on(error) and found is not None and bool(found.files)
        raise
    finally:
        if work.folder == folder and not keep and (work.begun or not (folder / record.NAME).exists()):
            _remove(folder)
        os.close(lock)


def check(out: Path) -> None:
    """Raise Refused where no result can come to be at `out`, without making anything."""
    refuse_existing(out)
    refuse_foreign(partial(out))
    above = next(path for path in out.parents if os.path.lexists(path))
    if not above.is_dir():
        raise refuse("out", f"{above} is not a folder", "Choose another place, or delete it first.")
    if not os.access(above, os.W_OK | os.X_OK):
        read_only = os.statvfs(above).f_flag & os.ST_RDONLY
        why = f"{above} is on a read-only file system" if read_only else f"this user may not write in {above}"
        raise Denied([Problem("out", why, "Choose another place, or let this user write there.")])


def refuse_existing(out: Path) -> None:
    """Raise Refused where something is in the result's place, be it a link to nothing, or no name can be there."""
    if is_there(out):
        raise refuse("out", f"{out} exists already", "Choose another name, or delete it first.")


def refuse_foreign(folder: Path) -> None:
    """Raise Refused where a working folder's name is taken by what no export made."""
    if not is_there(folder):
        return
    ours = not folder.is_symlink() and folder.is_dir()
    names: set[str] = set()
    with suppress(FileNotFoundError):  # another export has just ended and removed it
        names = set(os.listdir(folder)) if ours else names
    if not ours or (names and not names & set(OWN)):
        why = f"{folder}, where the export would work, is in the way and no export made it"
        raise refuse("out", why, "Move or delete it, or choose another name.")


def is_there(path: Path) -> bool:
    """Tell whether anything has this name, also a link to nothing; raise Refused where it can be no file's."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except PermissionError:
        raise Denied([Problem("out", f"this user may not look at {path}", "Choose another place.")]) from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise refuse("out", f"{str(path)!r} can't be a folder: {why.lower()}", "Choose another name.") from None
    return True


def _lock(out: Path, folder: Path) -> int:
    """Return the open lock of `folder`, which is made if need be."""
    while True:
        refuse_existing(out)
        refuse_foreign(folder)
        _make(folder)
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


def _make(folder: Path) -> None:
    """Make a folder where there is none; what is not known to reason_of is told here as a place that can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if reason_of(error) is not None:
            raise
        why = f"{folder} can't be made: {(error.strerror or str(error)).lower()}"
        raise refuse("out", why, "Choose another place.") from None


def _remove(folder: Path) -> None:
    """Remove the folder; its lock last, so that nobody begins in it before."""
    for path in folder.iterdir():
        if path.name != LOCK:
            _remove_one(path, ignore_errors=True)
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # another one has begun in it
        folder.rmdir()


def _remove_one(path: Path, *, ignore_errors: bool = False) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def results(folder: Path) -> list[Path]:
    """Return the files of the result in `folder`, by name."""
    return sorted(path for path in folder.iterdir() if path.name not in OWN)


def settle(folder: Path) -> None:
    """Flush every file of `folder`, and the folder, to disk."""
    for path in [*folder.iterdir(), folder]:
        sync(path)


def facts(path: Path) -> Written:
    """Return name, size and hash of a small file."""
    data = path.read_bytes()
    return Written(path.name, len(data), hashlib.sha256(data).hexdigest())
