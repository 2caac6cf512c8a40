"""Is every file of a checkpoint what its nodes wrote? The manifests say (training.saving.checkpoints)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..saving.checkpoints import FileFacts, Manifest, read_manifest
from ..spec.folder import EXPORT_READS, manifest_name
from ..spec.folder import MODEL_FOLDER as MODEL_FOLDER
from ..spec.lint import Problem
from .outcome import Damaged
from .shards.checked import OTHER as OTHER

METADATA = ".metadata"
READ = EXPORT_READS
GONE = "is not there any more: the checkpoint was probably rotated away"
NEWER = "Export a newer checkpoint."
ABSENT = "is not there: it was rotated away, or there never was one"
THERE = "Export a newer checkpoint, or correct the path."


@contextmanager
def staying(folder: Path) -> Iterator[None]:
    """Raise Damaged where a file of the checkpoint in `folder` vanishes meanwhile: the training deletes old ones."""
    try:
        yield
    except FileNotFoundError as error:
        missing = Path(str(error.filename or folder))
        if folder.is_dir() and folder not in missing.parents:
            raise
        raise Damaged([Problem(missing.name, GONE, NEWER)]) from error


def manifests(folder: Path) -> list[Manifest]:
    """Return every node's manifest, by rank; raise Damaged naming each that is missing or of another save."""
    found, problems = here(folder)
    if problems:
        raise Damaged(problems)
    return found


def here(folder: Path, coming: Container[str] = ()) -> tuple[list[Manifest], list[Problem]]:
    """Return the manifests that are here, by rank, and what is wrong; one that is `coming` may be missing."""
    found: list[Manifest] = []
    problems: list[Problem] = []
    count, rank = 1, 0
    while rank < count:
        part, name = read_manifest(folder, rank), manifest_name(rank)
        if part is not None:
            found.append(part)
            count = max(count, part.nodes)
        elif name not in coming:
            why = f"is missing or torn in {folder.name}: the save did not end, or this part lies on another node"
            problems.append(Problem(name, why, OTHER))
        if part is not None and part.node_rank != rank:
            problems.append(Problem(name, f"is of node {part.node_rank}", OTHER))
        rank += 1
    return found, problems + _of_two_saves(found)


def _of_two_saves(parts: Sequence[Manifest]) -> list[Problem]:
    if not (others := [manifest_name(part.node_rank) for part in parts if _save(part) != _save(parts[0])]):
        return []
    why = f"belongs to another save than {manifest_name(parts[0].node_rank)}"
    return [Problem(", ".join(others), why, OTHER)]


def merged(parts: Iterable[Manifest]) -> dict[str, FileFacts]:
    """Return all files of all nodes; raise Damaged where two nodes say different things of one file."""
    files: dict[str, FileFacts] = {}
    for part in parts:
        for name, entry in part.files.items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise Damaged([Problem(name, "a manifest names a file outside of the checkpoint", OTHER)])
            if files.setdefault(name, entry) != entry:
                raise Damaged([Problem(name, "two nodes recorded different contents for this file", OTHER)])
    return files


def size_problems(folder: Path, files: dict[str, FileFacts]) -> list[Problem]:
    """Return each file that is missing or has another size; reads no contents."""
    found = []
    for name, entry in sorted(files.items()):
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size is None:
            found.append(Problem(name, "is missing from the checkpoint", OTHER))
        elif size != entry.size:
            found.append(Problem(name, f"has {size} bytes, {entry.size} were written", OTHER))
    return found


def _save(manifest: Manifest) -> tuple[int, int, int, str]:
    return manifest.step, manifest.nodes, manifest.world_size, manifest.save
