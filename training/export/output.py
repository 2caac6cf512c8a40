"""One file of the result while it is written: hashed and written in order, flushed and noted now and then."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .layout import File
from .place import Written
from .record import Durable, Ledger


class Output:
    """A file from byte `at` on, of which `digest` has everything before. Each method is called by one thread alone."""

    def __init__(self, file: File, folder: Path, kept: int, digest: hashlib._Hash):
        self.file, self.kept, self.digest = file, kept, digest
        self.hashed = self.written = kept
        self._handle = os.open(folder / file.name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._handle, kept)

    def hash(self, view: memoryview) -> None:
        self.digest.update(view)
        self.hashed += len(view)

    def write(self, view: memoryview) -> int:
        while view:
            count = os.pwrite(self._handle, view, self.written)
            self.written += count
            view = view[count:]
        return self.written

    def so_far(self) -> Durable:
        """Return what has been hashed."""
        return Durable(size=self.hashed, sha256=self.digest.copy().hexdigest())

    def flush(self, so_far: Durable, ledger: Ledger) -> None:
        """Note what has been written, once the disk has it."""
        os.fdatasync(self._handle)
        ledger.note(self.file.name, so_far)

    def finish(self, so_far: Durable, ledger: Ledger) -> Written:
        """Flush and note all of it."""
        size = self.file.size
        assert so_far.size == self.written == size, f"{self.file.name}: {self.written} bytes written, {size} planned"
        self.flush(so_far, ledger)
        return Written(self.file.name, size, so_far.sha256)

    def close(self) -> None:
        os.close(self._handle)
