"""Checkpoints on disk: what makes one complete, which ones stay. Needs no torch.

A checkpoint is a folder `checkpoint-<step>`. Each node, when every rank has written, puts a manifest beside
its own files, last, under a temporary name and then renamed: a folder without the manifests of all its
nodes, or with a file that is not as they say, is torn and never taken.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..durable import sync
from ..spec.folder import checkpoint_name, manifest_name
from ..spec.retention import Seen
from . import removal

NAME = re.compile(r"checkpoint-(\d+)")
MANIFEST = re.compile(r"manifest-(\d+)\.json")
CHUNK = 1 << 20
SMALL = 64 << 20  # bytes up to which a file is always read again: among them .metadata, a pickle that must be ours


class FileFacts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int = Field(ge=0, description="Bytes.")
    sha256: str


class Metric(BaseModel):
    """A figure as it was last measured when a checkpoint was saved. NaN is written as a string."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")

    value: float
    step: int = Field(ge=0, description="At which step it was measured.")


class Manifest(BaseModel):
    """manifest-<node_rank>.json: the files of a checkpoint that one node wrote, by name relative to its folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")

    step: int = Field(ge=0)
    node_rank: int = Field(ge=0)
    nodes: int = Field(ge=1)
    world_size: int = Field(ge=1)
    save: str = Field("", description="Same on all nodes of one save, so that parts of two saves never mix.")
    metrics: dict[str, Metric] = Field(default_factory=dict, description="By name; the same on all nodes.")
    files: dict[str, FileFacts]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files.values())


def _measured(path: Path) -> FileFacts:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
        return FileFacts(size=file.tell(), sha256=digest.hexdigest())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in its place: all of it or nothing."""
    place = folder / manifest_name(manifest.node_rank)
    draft = place.with_suffix(".tmp")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, place)
    for directory in {folder, folder.parent, *(path for path in folder.iterdir() if path.is_dir())}:
        sync(directory)


def read_manifest(folder: Path, node_rank: int) -> Manifest | None:
    """Return one node's manifest; None where there is none or it can't be read."""
    try:
        return Manifest.model_validate_json((folder / manifest_name(node_rank)).read_bytes())
    except (OSError, ValidationError):
        return None


def faults(folder: Path, *, small: int = SMALL) -> list[str]:
    """Return what keeps the checkpoint in `folder` from being complete here; empty: it is.

    Sizes are compared, and the bytes of files up to `small`; those of the others by `changed`.
    """
    first = next(iter(manifests(folder)), None)
    if first is None:
        return ["it has no manifest, so its save did not end"]
    found: list[str] = []
    for node in range(first.nodes):
        manifest = read_manifest(folder, node)
        if manifest is None:
            found.append(f"the part of node {node} is missing")
        elif (manifest.step, manifest.nodes, manifest.save) != (first.step, first.nodes, first.save):
            found.append(f"the part of node {node} is from another save")
        else:
            found += _part_faults(folder, manifest, small=small)
    return found


def manifests(folder: Path) -> list[Manifest]:
    """Return the manifests that are here and can be read, by node."""
    numbers = (int(found[1]) for name in removal.names(folder) if (found := MANIFEST.fullmatch(name)))
    return [manifest for number in sorted(numbers) if (manifest := read_manifest(folder, number))]


def manifest_time(folder: Path, manifest: Manifest) -> float:
    """Return when it was written, in seconds since the epoch; 0 where it has gone meanwhile."""
    try:
        return (folder / manifest_name(manifest.node_rank)).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _part_faults(folder: Path, manifest: Manifest, *, small: int = SMALL) -> list[str]:
    """Return which files of one node's part are not as its manifest says. `small`: bytes up to which one is read."""
    found = []
    for name, facts in manifest.files.items():
        try:  # one look a file: a person may be deleting the checkpoint meanwhile
            size = (folder / name).stat().st_size
            if size != facts.size:
                found.append(f"{name} has {size} bytes in place of {facts.size}")
            elif facts.size <= small and _measured(folder / name) != facts:
                found.append(f"{name} was changed after its save")
        except (FileNotFoundError, NotADirectoryError):
            found.append(f"{name} is missing")
    return found


def own_faults(folder: Path, node_rank: int) -> list[str]:
    """Return what keeps one node's part of a checkpoint from being whole, by the sizes of its files."""
    manifest = read_manifest(folder, node_rank)
    if manifest is None:
        return ["it has no manifest, so its save did not end"]
    return _part_faults(folder, manifest, small=0)


def large_files(folder: Path) -> list[str]:
    """Return the names of those files of a complete checkpoint that faults() does not read, largest first."""
    sizes = {name: facts.size for m in manifests(folder) for name, facts in m.files.items() if facts.size > SMALL}
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def changed(folder: Path, names: Iterable[str]) -> list[str]:
    """Return which of these files are not, byte by byte, what their manifest says."""
    facts = {name: found for m in manifests(folder) for name, found in m.files.items()}
    return [f"{name} was changed after its save" for name in names if _measured(folder / name) != facts[name]]


def steps(root: Path) -> list[int]:
    """Return the steps of all checkpoint folders under `root`, complete or not, oldest first."""
    if not root.is_dir():
        return []
    names = (NAME.fullmatch(path.name) for path in root.iterdir() if path.is_dir())
    return sorted(int(found[1]) for found in names if found)


def seen(root: Path, node_rank: int, metric: str) -> list[Seen]:
    """Return the checkpoints under `root` as one node sees them: complete where its own part is whole."""
    return [_seen(root / checkpoint_name(step), step, node_rank, metric) for step in steps(root)]


def _seen(folder: Path, step: int, node_rank: int, metric: str) -> Seen:
    manifest = read_manifest(folder, node_rank)
    measured = manifest.metrics.get(metric) if manifest else None
    return Seen(
        step,
        not own_faults(folder, node_rank),
        measured.value if measured else None,
        measured.step if measured else None,
        removal.pinned(folder),
        tuple(removal.holds(folder)),
    )


def agreed(nodes: Sequence[Sequence[Seen]]) -> list[Seen]:
    """Return what all nodes together see, so that they judge alike: complete where each has its part whole.

    A pin or a hold on one node counts on all.
    """
    found = [{one.step: one for one in node} for node in nodes]
    return [_together([node.get(step) for node in found]) for step in sorted({s for node in found for s in node})]


def _together(parts: Sequence[Seen | None]) -> Seen:
    here = [part for part in parts if part]
    first = next((part for part in here if part.metric is not None), here[0])
    return replace(
        first,
        complete=len(here) == len(parts) and all(part.complete for part in here),
        pinned=any(part.pinned for part in here),
        held=tuple(sorted({number for part in here for number in part.held})),
    )
