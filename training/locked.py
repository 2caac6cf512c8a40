"""A lock that goes with the open file: a child that it is handed down to holds it as well. Standard library only."""

from __future__ import annotations

import fcntl
import os


def lock(path: str | os.PathLike[str]) -> int | None:
    """Open and lock the file, made where missing; return its descriptor, or None where another process holds it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
