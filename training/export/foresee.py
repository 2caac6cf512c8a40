"""What of a checkpoint is here, and what of it is wrong, by names and sizes; no shard is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..saving.checkpoints import FileFacts, Manifest
from ..spec.lint import Problem, Refused
from . import manifest
from .outcome import Damaged

METADATA = f"{manifest.MODEL_FOLDER}/{manifest.METADATA}"


@dataclass(frozen=True)
class Seen:
    """`files`: what the export reads, by name. `coming`: names and bytes that other nodes will send.

    `trusted`: .metadata is here and is what was written, so that it may be read.
    """

    step: int
    files: Mapping[str, FileFacts]
    coming: Mapping[str, int]
    trusted: bool

    @property
    def bytes(self) -> int:
        known = {name: entry.size for name, entry in self.files.items()}
        return sum((known | {n: size for n, size in self.coming.items() if n.startswith(manifest.READ)}).values())


def look(folder: Path, coming: Mapping[str, int], problems: list[Problem]) -> Seen:
    """Return what is there; add to `problems` what is missing, cut short, or of another save, and does not come."""
    if not folder.is_dir():
        raise Damaged([Problem("checkpoint", f"{folder} {manifest.ABSENT}", manifest.THERE)])
    parts, wrong = manifest.here(folder, coming)
    problems += wrong
    files = {name: e for name, e in _merged(parts, problems).items() if name.startswith(manifest.READ)}
    problems += manifest.size_problems(folder, {name: e for name, e in files.items() if name not in coming})
    if METADATA not in files and METADATA not in coming and parts:
        why = f"{folder.name} holds no sharded model"
        problems.append(Problem("checkpoint", why, "Choose a SHARDED_STATE_DICT checkpoint."))
    return Seen(parts[0].step if parts else 0, files, coming, _trusted(folder, files, problems))


def _merged(parts: Iterable[Manifest], problems: list[Problem]) -> dict[str, FileFacts]:
    try:
        return manifest.merged(parts)
    except Refused as refused:
        problems += refused.problems
        return {}


def _trusted(folder: Path, files: Mapping[str, FileFacts], problems: list[Problem]) -> bool:
    """Tell whether .metadata may be read: it is a pickle, and hashing it takes no time."""
    entry, path = files.get(METADATA), folder / METADATA
    if entry is None or not path.is_file() or path.stat().st_size != entry.size:
        return False
    if hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256:
        return True
    problems.append(Problem(METADATA, "its contents changed since it was written (sha256)", manifest.OTHER))
    return False


def check_shards(named: Iterable[str], folder: Path, seen: Seen) -> None:
    """Raise Damaged where .metadata names a file that no manifest has, and that is neither here nor coming."""
    names = {f"{manifest.MODEL_FOLDER}/{name}" for name in named} - {*seen.files, *seen.coming}
    if missing := sorted(name for name in names if not (folder / name).is_file()):
        raise Damaged([Problem(name, "is missing from the checkpoint", manifest.OTHER) for name in missing])
