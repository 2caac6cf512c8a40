"""The workshop: where an artefact is made, by one process at a time, under another name until it is whole."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..spec.folder import Tokens
from ..spec.lint import Problem, Refused

WAIT_SECONDS = 0.5  # between two looks at a lock that another holds
FULL = (errno.ENOSPC, errno.EDQUOT)  # an end of its own, which names the disk
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def workshop(tokens: Tokens, pause: Callable[[], None]) -> Iterator[Path | None]:
    """Give an empty folder to make the artefact in, published at the end; None where another has made it meanwhile.

    `pause` is called while this waits. Raises Refused, OSError.
    """
    lock = _opened(tokens)
    try:
        alone = _locked(lock, pause)
        if Path(tokens.counts).is_file():
            yield None
            return
        if alone:
            _clear(tokens)
        place = Path(tempfile.mkdtemp(prefix=tokens.unfinished, dir=tokens.path.parent))
        try:
            yield place
            _publish(place, tokens)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(lock)


def _opened(tokens: Tokens) -> int:
    try:
        Path(tokens.path.parent).mkdir(parents=True, exist_ok=True)
        return os.open(tokens.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno in FULL:
            raise
        fix = "Let this user write there, or keep runs under another folder."
        raise Refused([Problem("data", f"tokens can't be kept in {tokens.path.parent}: {error}", fix)]) from None


def _clear(tokens: Tokens) -> None:
    """Remove what killed makers left. Call with the lock held: nobody else is making one."""
    for left in Path(tokens.path.parent).glob(f"{tokens.unfinished}*"):
        shutil.rmtree(left, ignore_errors=True)


def _locked(lock: int, pause: Callable[[], None]) -> bool:
    """Take the lock, waiting for it; False where this file system has none."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pause()
            time.sleep(WAIT_SECONDS)  # not blocking in flock, or a request to stop would wait for the other
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return False
        else:
            return True


def _publish(place: Path, tokens: Tokens) -> None:
    """Rename the finished folder into place, its bytes on the disk."""
    for path in place.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    place.chmod(0o755)  # mkdtemp's 700 would hide it from another user's ranks
    try:
        place.rename(tokens.path)
    except OSError:
        if not Path(tokens.counts).is_file():  # else another was faster, where there are no locks
            raise
