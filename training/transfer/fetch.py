"""Take files of another node: `python -m training fetch`, told by a spec.transfer.Taking on standard input.

Prints a spec.transfer.Taken at its end. A file gets its name when it is whole and its hash is right; one that was
broken off goes on where it was. Of two at once into one folder, the second waits and finds what the first has brought.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..durable import sync
from ..spec.faults import Reason
from ..spec.folder import part_name
from ..spec.transfer import Taken, Taking, Wanted
from .borrowed import Borrowed, LinkFailed, NotLent
from .place import Place, make_key, write_private

BLOCK = 1 << 20
SAY_SECONDS = 0.5
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def key(argv: list[str]) -> int:
    """Make the place and its key; print the public half: `python -m training fetch-key PLACE`."""
    place = Place(argv[0])
    place.make()
    print(make_key(place.key))
    return 0


def main(argv: list[str]) -> int:
    """Take what is asked for, and say how it ended."""
    taking = Taking.model_validate_json(sys.stdin.buffer.read())
    place = Place(taking.place)
    try:
        print(fetch(taking, place).model_dump_json())
    finally:
        place.remove()
    return 0


class Told:
    """Bytes that are there, said in the place's `progress` now and then; `came`: of them, over the link."""

    def __init__(self, place: Place):
        self.place, self.there, self.came, self._said = place, 0, 0, 0.0

    def found(self, count: int) -> None:
        """Count bytes that are there already; of a file that begins again, fewer than none."""
        self.there += count
        if time.monotonic() - self._said > SAY_SECONDS:
            self._said = time.monotonic()
            write_private(self.place.progress, str(self.there))

    def brought(self, count: int) -> None:
        self.came += count
        self.found(count)


def fetch(taking: Taking, place: Place) -> Taken:
    """Take every file that is not there yet."""
    folder, told = Path(taking.folder), Told(place)
    folder.mkdir(parents=True, exist_ok=True)
    host = taking.address if taking.lent.port == 22 else f"[{taking.address}]:{taking.lent.port}"
    write_private(place.known_hosts, f"{host} {taking.lent.host_key}\n")
    try:
        with _alone(folder), Borrowed(place, taking) as borrowed:
            for wanted in taking.files:
                _one(folder, wanted, borrowed, told)
        return Taken(bytes=told.came)
    except NotLent as error:
        return Taken(reason=Reason.DATA, text=str(error), bytes=told.came)
    except LinkFailed as error:
        return Taken(reason=Reason.NETWORK, text=str(error), bytes=told.came)
    except OSError as error:
        reason = Reason.DISK_FULL if error.errno in NO_ROOM else Reason.PERMISSION
        return Taken(reason=reason, text=str(error), bytes=told.came)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until nobody else fetches into `folder`. The folder itself is locked: no file of ours stays in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _one(folder: Path, wanted: Wanted, borrowed: Borrowed, told: Told) -> None:
    path = folder / wanted.name
    if path.exists() and path.stat().st_size == wanted.size:
        told.found(wanted.size)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(part_name(path.name))
    whole = _write(part, wanted, borrowed, told) or _again(part, wanted, borrowed, told)
    if not whole:
        part.unlink()
        raise NotLent(f"{wanted.name} on {borrowed.source} is not what was saved (its hash differs)")
    os.replace(part, path)
    sync(path.parent)


def _again(part: Path, wanted: Wanted, borrowed: Borrowed, told: Told) -> bool:
    """What an earlier try had left may have been damaged, not what is lent: begin with nothing."""
    part.unlink()
    told.found(-wanted.size)
    return _write(part, wanted, borrowed, told)


def _write(part: Path, wanted: Wanted, borrowed: Borrowed, told: Told) -> bool:
    """Write what is missing of the file; return whether all of it has the right hash."""
    digest = hashlib.sha256()
    with part.open("ab") as file:
        there = _known(part, wanted.size, digest)
        file.truncate(there)
        told.found(there)
        for block in borrowed.read(wanted.name, there, wanted.size):
            file.write(block)
            digest.update(block)
            told.brought(len(block))
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest() == wanted.sha256


def _known(part: Path, size: int, digest: hashlib._Hash) -> int:
    """Hash what an earlier try has left, and return how much that is; more than the file has is nothing."""
    found = part.stat().st_size
    if found > size:
        return 0
    with part.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return found
