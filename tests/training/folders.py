"""What tests ask of a checkpoint's folder: which files are in it, whose they are, and whether every byte is right."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from training.saving import checkpoints
from training.saving.checkpoints import MANIFEST, FileFacts
from training.spec.folder import HOLD

SHARD = re.compile(r"(?:__(\d+)_\d+\.distcp|rng_state_(\d+)\.pth|window_(\d+)\.json)")


def shard_rank(name: str) -> int | None:
    """Return the rank whose own file this is, or None for a file common to all."""
    found = SHARD.fullmatch(Path(name).name)
    return int(found[1] or found[2] or found[3]) if found else None


def file_names(folder: Path) -> list[str]:
    """Return the names of all files under `folder`, relative to it; manifests and holds left out."""
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in files if not MANIFEST.fullmatch(name) and not name.startswith(HOLD))


def measured(folder: Path, names: Iterable[str]) -> dict[str, FileFacts]:
    """Return size and hash of each file, for a manifest."""
    contents = {name: (folder / name).read_bytes() for name in names}
    return {name: FileFacts(size=len(c), sha256=hashlib.sha256(c).hexdigest()) for name, c in contents.items()}


def damage(folder: Path) -> list[str]:
    """Return what is wrong with a checkpoint, every byte of it read, as a resume reads it."""
    return checkpoints.faults(folder) or checkpoints.changed(folder, checkpoints.large_files(folder))
