"""PURE: what is delivered of an export, its files, and SHA256SUMS over them, as on nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class File:
    """A file as it must arrive. `size` in bytes."""

    name: str
    size: int
    sha256: str


def files_of(listed: Iterable[Mapping[str, Any]]) -> list[File]:
    """Return the export's files, then SHA256SUMS: it says that a folder is whole."""
    files = [File(file["name"], file["size"], file["sha256"]) for file in listed if file["name"] != SUMS]
    text = sums_of(files).encode()
    return [*files, File(SUMS, len(text), hashlib.sha256(text).hexdigest())]


def sums_of(files: Iterable[File]) -> str:
    """Return the content of SHA256SUMS, which `sha256sum -c` reads."""
    return "".join(f"{file.sha256}  {file.name}\n" for file in files if file.name != SUMS)
