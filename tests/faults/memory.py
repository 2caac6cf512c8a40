"""A memory limit around a process: what the kernel does to a host that has no more."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path("/sys/fs/cgroup")


class MemoryLimit:
    """A control group named `name`, of version 1 or 2. Raises OSError where none can be made."""

    def __init__(self, name: str):
        old = ROOT / "memory"
        self.path = (old if old.is_dir() else ROOT) / name
        self.limit = "memory.limit_in_bytes" if old.is_dir() else "memory.max"
        self.path.mkdir(exist_ok=True)

    def squeeze(self, process: psutil.Process, room: int = 4 << 20) -> None:
        """Put `process` in, with `room` bytes for what it allocates from now on: a step of training takes more."""
        (self.path / self.limit).write_text(str(room))
        (self.path / "cgroup.procs").write_text(str(process.pid))

    def remove(self) -> None:
        with suppress(OSError):
            self.path.rmdir()
