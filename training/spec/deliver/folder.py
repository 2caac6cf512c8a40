"""PURE: what has to arrive of an export, SHA256SUMS over it, and the working folder that it arrives in.

`python -m training deliver` and a worker that carries files to another node go by the same: `<folder>.delivery` beside
the place holds a mark, `new` with what has come, and `old` with what had the place before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

WORKING = ".delivery"  # what the names of working folders end with
MARK, NEW, OLD = "of-shardboard", "new", "old"  # the mark goes last: with it, what lies there is a delivery's to remove
SUMS = "SHA256SUMS"
NO_FILE = -1  # the size of a folder, a link or another thing that no delivery makes


class Hashed(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True)
class File:
    """One file as it must arrive: its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sums_of(files: Iterable[Hashed]) -> str:
    """Return the content of SHA256SUMS, which `sha256sum -c` reads."""
    return "".join(f"{file.sha256}  {file.name}\n" for file in files if file.name != SUMS)


def with_sums(files: Iterable[File]) -> tuple[File, ...]:
    """Return the files in their order, then SHA256SUMS: coming last, it says that all of them are there."""
    others = tuple(file for file in files if file.name != SUMS)
    content = sums_of(others).encode()
    return (*others, File(SUMS, len(content), hashlib.sha256(content).hexdigest()))


def unfit(there: Mapping[str, int], files: Iterable[File]) -> list[str]:
    """Return the names in a folder that aren't of the delivery, or not of its size. `there`: bytes by name."""
    sizes = {file.name: file.size for file in files}
    return sorted(name for name, size in there.items() if sizes.get(name) != size)


def lacking(there: Mapping[str, int], files: Iterable[File]) -> list[str]:
    """Return the files that a folder lacks, or has in another size."""
    return [file.name for file in files if there.get(file.name) != file.size]


def is_foreign(names: Iterable[str]) -> bool:
    """Tell whether what has the working folder's name was made by no delivery."""
    found = set(names)
    return bool(found) and MARK not in found
