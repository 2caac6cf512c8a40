"""A file's SHA-256 against what its node wrote down, taken of the very bytes that the export reads anyway.

A file is hashed from front to back once. What the export reads in that order is fed to the hash as it comes; what it
leaves out (the small records between tensors) and what it read out of order is read for the hash alone. Until the
export begins to read, a thread hashes ahead: the libraries take seconds to import. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from pathlib import Path

from ...saving.checkpoints import FileFacts
from ...spec.lint import Problem
from ..outcome import Damaged

BLOCK = 1 << 23
AHEAD = 1 << 25  # bytes of a file before the next file's turn
NEAR = 1 << 22  # bytes left out between two tensors that are read at once; more is waited for
OTHER = "Export another checkpoint, or bring the missing part here from its node."


class Checked:
    """One file, hashed up to `at`. Any thread may use it."""

    def __init__(self, name: str, path: Path, facts: FileFacts):
        self.name, self.path, self.facts = name, path, facts
        self.at = 0
        self._digest = hashlib.sha256()
        self._lock = threading.Lock()
        self._later: list[tuple[int, int]] = []  # read by the export before the hash was there

    def read_into(self, start: int, view: memoryview) -> None:
        """Fill `view` with the file's bytes from `start` on. Raises Damaged where it is shorter."""
        done = 0
        with self.path.open("rb", buffering=0) as file:  # opened anew: a checkpoint may have a thousand files
            while done < len(view):
                count = os.preadv(file.fileno(), [view[done:]], start + done)
                if not count:
                    raise Damaged([Problem(self.name, f"ends at {start + done} of {self.facts.size} bytes", OTHER)])
                done += count

    def feed(self, start: int, view: memoryview) -> None:
        """Take bytes that the export has read, in whichever order they come."""
        with self._lock:
            if start > self.at + NEAR:
                heappush(self._later, (start, start + len(view)))
                return
            if start > self.at:
                self._read(start, _buffer(start - self.at))
            self._digest.update(view[self.at - start :] if self.at > start else view)
            self.at = max(self.at, start + len(view))
            while self._later and self._later[0][0] <= self.at + NEAR:
                end = heappop(self._later)[1]
                self._read(end, _buffer(end - self.at))

    def hash_to(self, end: int, on_bytes: Callable[[int], None] = lambda count: None) -> None:
        """Hash up to `end`, from the disk."""
        buffer = _buffer(end - self.at)
        while self.at < end:
            with self._lock:
                before = self.at
                self._read(min(end, before + BLOCK), buffer)
                count = self.at - before
            on_bytes(count)

    def _read(self, end: int, buffer: memoryview) -> None:
        while self.at < end:
            view = buffer[: end - self.at]
            self.read_into(self.at, view)
            self._digest.update(view)
            self.at += len(view)

    def problem(self) -> Problem | None:
        """Return what is wrong with the file, of which everything has been hashed."""
        assert self.at == self.facts.size, f"{self.name}: {self.at} of {self.facts.size} bytes were hashed"
        if self._digest.hexdigest() == self.facts.sha256:
            return None
        return Problem(self.name, "its contents changed since it was written (sha256)", OTHER)


def _buffer(count: int) -> memoryview:
    return memoryview(bytearray(min(BLOCK, max(0, count))))


class Files(Mapping[str, Checked]):
    """The files of a checkpoint that an export reads, by their names in the manifests."""

    def __init__(self, folder: Path, facts: Mapping[str, FileFacts]):
        self.folder = folder
        self._files = {name: Checked(name, folder / name, entry) for name, entry in sorted(facts.items())}

    def __getitem__(self, name: str) -> Checked:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def identity(self) -> dict[str, list[int | str]]:
        """Return what would be another if somebody put other bytes in a file's place."""
        found: dict[str, list[int | str]] = {}
        for name, file in self.items():
            about = file.path.stat()
            found[name] = [file.facts.sha256, about.st_size, about.st_mtime_ns, about.st_ino]
        return found

    def check(self, on_bytes: Callable[[int], None] = lambda count: None) -> None:
        """Hash what has not been hashed yet; raise Damaged naming each file that is not as it was written."""
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(file.hash_to, file.facts.size, on_bytes) for file in self.values()]:
                done.result()
        if found := [problem for file in self.values() if (problem := file.problem())]:
            raise Damaged(found)

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Hash while the caller does something else; how far it gets is of no matter."""
        enough = threading.Event()
        thread = threading.Thread(target=self._ahead, args=(enough,), name="hash-ahead")
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()

    def _ahead(self, enough: threading.Event) -> None:
        # What is wrong with a file is found again, and told, by whoever needs it.
        with suppress(OSError, Damaged):
            while not enough.is_set():
                file = min(self.values(), key=lambda one: one.at / max(1, one.facts.size))
                if file.at >= file.facts.size:
                    return
                file.hash_to(min(file.facts.size, file.at + AHEAD))
