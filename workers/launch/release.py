"""The training code as it is put on nodes: named by its content, put once per version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import training

ROOT = Path(training.__file__).parent
LEFT_OUT = {"__pycache__"}


@dataclass(frozen=True)
class Release:
    """`files`: name relative to the release's folder -> content. `digest` names the folder."""

    digest: str
    files: dict[str, bytes]


@cache
def current() -> Release:
    """Return the code this process was started with; read once, so that an update under our feet stays out."""
    names = (path for path in sorted(ROOT.rglob("*")) if path.is_file() and not LEFT_OUT & set(path.parts))
    files = {path.relative_to(ROOT.parent).as_posix(): path.read_bytes() for path in names if path.suffix != ".pyc"}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return Release(digest.hexdigest()[:32], files)
