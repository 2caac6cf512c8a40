"""Is every file of a checkpoint what its nodes wrote? The manifests say (training.saving.checkpoints)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..saving.checkpoints import FileFacts, Manifest, read_manifest
from ..spec.folder import manifest_name
from ..spec.lint import Problem
from .outcome import Damaged
from .shards.checked import OTHER as OTHER

MODEL_FOLDER = "pytorch_model_fsdp_0"  # accelerate's name for the first model of a checkpoint
METADATA = ".metadata"
GONE = "is not there any more: the checkpoint was probably rotated away"
NEWER = "Export a newer checkpoint."


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
    """Return every node's manifest, by rank; raise Damaged naming each that is missing or contradicts the first."""
    first = _read(folder, 0)
    found = [first, *(_read(folder, rank) for rank in range(1, first.nodes))]
    wrong = [m.node_rank for i, m in enumerate(found) if _save(m) != _save(first) or m.node_rank != i]
    if wrong:
        names = ", ".join(manifest_name(rank) for rank in wrong)
        raise Damaged([Problem(names, "belongs to another save than manifest-0.json", OTHER)])
    return found


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


def _read(folder: Path, rank: int) -> Manifest:
    found = read_manifest(folder, rank)
    if found is None:
        reason = f"is missing or torn in {folder.name}: the save did not end, or this part lies on another node"
        raise Damaged([Problem(manifest_name(rank), reason, OTHER)])
    return found


def _save(manifest: Manifest) -> tuple[int, int, int, str]:
    return manifest.step, manifest.nodes, manifest.world_size, manifest.save
