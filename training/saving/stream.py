"""Files hashed while they are written, so that a checkpoint is read by nobody before it counts."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.filesystem import FileSystem

from .checkpoints import FileFacts

BUFFER = 1 << 20
APART = 1 << 18  # bytes from which the hash is taken in a thread of its own, beside the write


class HashedFile(io.RawIOBase):
    """A new file at `path` that hashes what it is given; both let other threads run meanwhile."""

    def __init__(self, path: Path, hasher: ThreadPoolExecutor):
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        self._hasher = hasher
        self._digest = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def fileno(self) -> int:
        return self._handle

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        if len(view) < APART:
            self._digest.update(view)
            self._put(view)
        else:
            hashed = self._hasher.submit(self._digest.update, view)
            try:
                self._put(view)
            finally:
                hashed.result()  # the bytes are the caller's again when this returns
        self._size += len(view)
        return len(view)

    def _put(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            done += os.write(self._handle, view[done:])

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()

    @property
    def facts(self) -> FileFacts:
        return FileFacts(size=self._size, sha256=self._digest.hexdigest())


class HashingFileSystem(FileSystem):
    """The file system of a distributed save: each file it writes is on the disk, and in `facts`, when closed."""

    def __init__(self) -> None:
        self.facts: dict[Path, FileFacts] = {}
        self._hasher = ThreadPoolExecutor(1, thread_name_prefix="hash")

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[io.IOBase]:
        assert mode == "wb", mode
        raw = HashedFile(Path(path), self._hasher)
        with io.BufferedWriter(raw, BUFFER) as stream:
            yield stream
        self.facts[Path(path)] = raw.facts

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        super().rename(path, new_path)
        self.facts[Path(new_path)] = self.facts.pop(Path(path))

    def put(self, path: Path, content: bytes) -> None:
        """Write a small file."""
        with self.create_stream(path, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())

    def close(self) -> None:
        self._hasher.shutdown()
