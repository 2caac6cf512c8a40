"""What is delivered: the files that the export's proof names, the proof itself, and SHA256SUMS over all of them.

SHA256SUMS comes last wherever files come one by one, so it says that a delivery is whole, and `sha256sum -c` checks it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..export.proof import NAME as PROOF
from ..spec.deliver.folder import SUMS, File, sums_of, with_sums
from ..spec.faults import Reason
from ..spec.lint import Problem, Refused
from .ends import failed, refuse

BLOCK = 1 << 22
LONGEST = 1 << 26  # bytes of a proof
AGAIN = "Export it again."


@dataclass(frozen=True)
class Source:
    """The export's folder, and its files in the order that they are sent in; SHA256SUMS is not among them."""

    folder: Path
    files: tuple[File, ...]

    @property
    def sums(self) -> bytes:
        """The content of SHA256SUMS."""
        return sums_of(self.files).encode()

    @property
    def marker(self) -> File:
        return self.all[-1]

    @property
    def all(self) -> tuple[File, ...]:
        return with_sums(self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.all)

    def open(self, file: File) -> BinaryIO:
        """Open one of the files; raise Failed where it isn't a file of that size any more."""
        handle = os.open(self.folder / file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        opened = os.fdopen(handle, "rb", buffering=0)
        if os.fstat(handle).st_size != file.size:
            opened.close()
            raise changed(file)
        return opened

    def content(self, file: File) -> bytes:
        """Return a small file's bytes, compared with its hash; raise Failed where it changed since the proof."""
        if file == self.marker:
            return self.sums
        with self.open(file) as opened:
            data = opened.read()
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise changed(file)
        return data


def read_source(folder: Path) -> Source:
    """Return what the proof in `folder` names; raise Refused or Failed with every file that isn't as it says."""
    if not folder.is_dir():
        raise refuse("source", f"{folder} is no folder here", "Name the folder of an export.")
    proof = _proof(folder)
    files = [*_listed(proof), _record(folder / PROOF)]
    if len({file.name for file in files}) != len(files):
        raise refuse("source", f"{PROOF} names a file twice", AGAIN)
    if problems := [problem for file in files if (problem := _size_problem(folder, file))]:
        raise failed(Reason.DATA, "source", "; ".join(f"{p.field} {p.reason}" for p in problems), AGAIN)
    return Source(folder, tuple(files))


def changed(file: File) -> Exception:
    return failed(Reason.DATA, f"source {file.name}", "its contents changed since the proof (sha256)", AGAIN)


def unlisted(source: Source) -> list[str]:
    """Return what lies in the folder and is not named by the proof: it is not delivered."""
    names = {file.name for file in source.all}
    return sorted(path.name for path in source.folder.iterdir() if path.name not in names)


def hashed(path: Path, on_bytes: Callable[[int], None]) -> str:
    """Return the SHA-256 of a file, read from the disk where the system lets go of its cache."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for block in blocks(file):
            digest.update(block)
            on_bytes(len(block))
    return digest.hexdigest()


def blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _proof(folder: Path) -> dict[str, Any]:
    path = folder / PROOF
    if os.path.lexists(path) and not path.is_file():
        raise refuse("source", f"{PROOF} is no file", AGAIN)
    try:
        if path.stat().st_size > LONGEST:
            raise refuse("source", f"{PROOF} is no proof: it is too long", AGAIN)
        found = json.loads(path.read_text("utf-8"))
        assert isinstance(found["files"], list)
    except FileNotFoundError:
        raise refuse("source", f"{folder} holds no {PROOF}", "Only an export that is proven is delivered.") from None
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
        raise refuse("source", f"{PROOF} can't be read", AGAIN) from None
    proof: dict[str, Any] = found
    return proof


def _listed(proof: dict[str, Any]) -> list[File]:
    try:
        files = [File(str(f["name"]), int(f["size"]), str(f["sha256"])) for f in proof["files"]]
    except (KeyError, TypeError, ValueError, OverflowError):  # of 1e400, which JSON reads as infinity
        raise refuse("source", f"{PROOF} names its files in no way that is known here", AGAIN) from None
    odd = [f.name for f in files if Path(f.name).name != f.name or f.name in ("", "..") or not f.name.isprintable()]
    if odd or not files:
        raise Refused([Problem("source", f"{PROOF} names {odd[0]!r}" if odd else f"{PROOF} names no file", AGAIN)])
    return [file for file in files if file.name not in (PROOF, SUMS)]


def _record(path: Path) -> File:
    data = path.read_bytes()
    return File(path.name, len(data), hashlib.sha256(data).hexdigest())


def _size_problem(folder: Path, file: File) -> Problem | None:
    try:
        about = (folder / file.name).lstat()
    except FileNotFoundError:
        return Problem(file.name, "is missing", AGAIN)
    if not stat.S_ISREG(about.st_mode):
        return Problem(file.name, "is no file of its own", AGAIN)
    if about.st_size != file.size:
        return Problem(file.name, f"has {about.st_size:,} bytes, {file.size:,} were proven", AGAIN)
    return None
