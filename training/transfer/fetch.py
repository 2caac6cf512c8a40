"""Take files of another node: `python -m training fetch`, told by a spec.transfer.Taking on standard input.

It goes on in the background: `progress` in its place says twice a second how many bytes are there, and `taken.json`, a
spec.transfer.Taken, how it ended, until the place's `done` file says that this was read. A file gets its name when it
is whole and its hash is right; one that was broken off goes on where it was. Of two at once into one folder, the second
waits and finds what the first has brought.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..durable import sync
from ..spec.faults import Reason
from ..spec.folder import part_name
from ..spec.transfer import Taken, Taking, Wanted
from .borrowed import Borrowed, LinkFailed, NotLent
from .place import Place, make_key, write_private

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 1 << 20
SAY_SECONDS = 0.5
READ_SECONDS = 60.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def key(argv: list[str]) -> int:
    """Make the place and its key; print the public half: `python -m training fetch-key PLACE`."""
    place = Place(argv[0])
    try:
        place.make()
        print(make_key(place.key))
    except OSError as error:
        print(f"fetch-key: {error}", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str]) -> int:
    """Begin to take what is asked for, in the background: it may take hours, and goes on whatever becomes of us."""
    taking = Taking.model_validate_json(sys.stdin.buffer.read())
    place = Place(taking.place)
    place.make()
    write_private(place.told, taking.model_dump_json())
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with (place.path / "fetch.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, "-m", "training", "fetch-run", str(place.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True,
        )  # fmt: skip
    return 0


def run(argv: list[str]) -> int:
    """Take it, say how it ended, and stay a little so that this can be read."""
    place = Place(argv[0])
    try:
        taken = fetch(Taking.model_validate_json(place.told.read_bytes()), place)
        place.forget_keys()
        write_private(place.taken, taken.model_dump_json())
        deadline = time.monotonic() + READ_SECONDS
        while time.monotonic() < deadline and not place.done.exists():
            time.sleep(SAY_SECONDS)
    finally:
        place.remove()
    return 0


class Told:
    """Bytes that are there; `came`: of them, over the link. Entered, it says them, and that we live, twice a second."""

    def __init__(self, place: Place):
        self.there, self.came, self._place, self._over = 0, 0, place, threading.Event()
        self._saying = threading.Thread(target=self._say, daemon=True)

    def __enter__(self) -> Told:
        self._saying.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._saying.join()

    def _say(self) -> None:
        while not self._over.wait(SAY_SECONDS):
            with suppress(OSError):  # the disk may be what is full
                write_private(self._place.progress, f"{self.there} {time.time()}")

    def brought(self, count: int) -> None:
        self.came += count
        self.there += count


def fetch(taking: Taking, place: Place) -> Taken:
    """Take every file that is not there yet."""
    folder, told = Path(taking.folder), Told(place)
    folder.mkdir(parents=True, exist_ok=True)
    host = taking.address if taking.lent.port == 22 else f"[{taking.address}]:{taking.lent.port}"
    write_private(place.known_hosts, f"{host} {taking.lent.host_key}\n")
    try:
        # Connected first: who waits for another one's files must not look as if nobody needed what is lent.
        with Borrowed(place, taking) as borrowed, told, _alone(folder):
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
        told.there += wanted.size
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(part_name(path.name))
    try:
        whole = _write(part, wanted, borrowed, told) or _again(part, wanted, borrowed, told)
    except OSError as error:
        if error.errno in NO_ROOM:  # what is there helps nobody, and to say so takes room as well
            part.unlink(missing_ok=True)
        raise
    if not whole:
        part.unlink()
        raise NotLent(f"{wanted.name} on {borrowed.source} is not what was saved (its hash differs)")
    os.replace(part, path)
    sync(path.parent)


def _again(part: Path, wanted: Wanted, borrowed: Borrowed, told: Told) -> bool:
    """What an earlier try had left may have been damaged, not what is lent: begin with nothing."""
    part.unlink()
    told.there -= wanted.size
    return _write(part, wanted, borrowed, told)


def _write(part: Path, wanted: Wanted, borrowed: Borrowed, told: Told) -> bool:
    """Write what is missing of the file; return whether all of it has the right hash."""
    digest = hashlib.sha256()
    with part.open("ab") as file:
        there = _known(part, wanted.size, digest)
        file.truncate(there)
        told.there += there
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
