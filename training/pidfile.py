"""The pid file: who supervises a job. Locked while that process lives, so that there is never a second one.

A lock goes with the open file, not with the process: `start` takes it and hands the open file down to the
supervisor, so no moment is left in which a second `start` could slip in.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from .locked import lock
from .processes import POLL_SECONDS, Identity
from .spec.folder import JobFolder

WAIT_SECONDS = 60.0


class PidFile:
    """The `pid` file of one job folder."""

    def __init__(self, folder: JobFolder):
        self.path = Path(folder.pid)

    def lock(self) -> int | None:
        """Lock the file; return its descriptor, or None where a supervisor or another caller holds it."""
        return lock(self.path)

    def lock_or_supervisor(self) -> int | Identity:
        """Return the lock (see `lock`) or the living supervisor; wait where another caller is at work.

        Raises TimeoutError where that takes too long.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            if (lock := self.lock()) is not None:
                return lock
            if supervisor := self.supervisor():
                return supervisor
            time.sleep(POLL_SECONDS)
        raise TimeoutError(f"{self.path} is locked, but no supervisor came up in {WAIT_SECONDS:.0f} s")

    def write(self, file: int) -> None:
        """Write this process as the supervisor into the locked file."""
        identity = Identity.of(os.getpid())
        assert identity is not None
        os.pwrite(file, (json.dumps(asdict(identity)) + "\n").encode(), 0)
        os.fsync(file)

    def read(self) -> Identity | None:
        """Return the supervisor, living or not; None where none was ever started."""
        try:
            return Identity(**json.loads(self.path.read_text("ascii")))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def supervisor(self) -> Identity | None:
        """Return the supervisor if it lives."""
        identity = self.read()
        return identity if identity and identity.alive() else None
