"""The checkpoints of one attempt as they lie on this node's disk, and what a person may do to them.

Safe beside a training that saves and rotates there, and beside another caller. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..pidfile import PidFile
from ..spec.folder import EXPORT_READS, JobFolder, checkpoint_name
from . import checkpoints, removal

GONE = "it is not there"


@dataclass(frozen=True)
class Entry:
    """One checkpoint's folder as this node sees it.

    `parts`: nodes whose part is whole here, of `nodes`; `save` is the same in parts of one save. `faults`: why not all
    are, by the sizes of files, unless every byte was read. `bytes`: of all files. `written_at`: seconds since the
    epoch of this node's clock. Before there is a manifest `nodes`, `world_size` and `written_at` are 0.
    """

    name: str
    step: int
    bytes: int
    complete: bool
    parts: list[int]
    faults: list[str]
    nodes: int
    world_size: int
    save: str
    written_at: float
    pinned: bool
    held: list[int]


@dataclass(frozen=True)
class Refusal:
    """Why nothing was done to a checkpoint."""

    name: str
    reason: str
    fix: str


def listed(root: Path, *, verify: bool = False) -> list[Entry]:
    """Return the checkpoints under `root`, oldest first. `verify`: compare every byte with its hash."""
    found = (_entry(root / checkpoint_name(step), step, verify=verify) for step in checkpoints.steps(root))
    return [entry for entry in found if entry]


def _entry(folder: Path, step: int, *, verify: bool) -> Entry | None:
    faults = checkpoints.faults(folder, small=checkpoints.SMALL if verify else 0)
    if verify and not faults:
        faults = checkpoints.changed(folder, checkpoints.large_files(folder))
    manifests = checkpoints.manifests(folder)
    first = manifests[0] if manifests else None
    entry = Entry(
        folder.name,
        step,
        removal.size(folder),
        not faults,
        [m.node_rank for m in manifests if not checkpoints.own_faults(folder, m.node_rank)],
        faults,
        first.nodes if first else 0,
        first.world_size if first else 0,
        first.save if first else "",
        max((checkpoints.manifest_time(folder, m) for m in manifests), default=0.0),
        removal.pinned(folder),
        removal.holds(folder),
    )
    return entry if folder.is_dir() else None  # rotated away while it was looked at


def pin(folder: Path) -> Refusal | None:
    """Pin the checkpoint, so that neither training nor a person deletes it."""
    try:
        removal.pin(folder)
    except FileNotFoundError:
        return Refusal(folder.name, GONE, "Choose another one.")
    return None


def unpin(folder: Path) -> Refusal | None:
    """Let go of it; one that is not pinned, or not there, stays so."""
    removal.unpin(folder)
    return None


def delete(folders: Iterable[Path], *, ended: bool = False) -> tuple[int, list[str], list[Refusal]]:
    """Delete what nothing keeps; return the bytes freed, the names that are gone (or never were), and the refusals.

    `ended`: the caller knows that training is over on all nodes, so that even the newest may go.
    """
    freed, gone, refused = 0, [], []
    for folder in folders:
        if refusal := _kept(folder, ended=ended):
            refused.append(refusal)
            continue
        freed += removal.delete(folder)
        if folder.is_dir():  # pinned or held at the last moment
            refused.append(_kept(folder, ended=True) or Refusal(folder.name, "it came back", "Look again."))
        else:
            gone.append(folder.name)
    return freed, gone, refused


def _kept(folder: Path, *, ended: bool) -> Refusal | None:
    if folder.is_symlink():
        return Refusal(folder.name, "it is a link", "Delete what it points to, then the link, by hand.")
    if removal.pinned(folder):
        return Refusal(folder.name, "it is pinned", "Unpin it first.")
    if held := removal.holds(folder):
        names = ", ".join(f"export {number}" for number in held)
        return Refusal(folder.name, f"it is held by {names}", "Wait for its end, or cancel it.")
    if folder.is_dir() and not (ended and not _trains(folder)) and folder in _needed(folder.parent):
        if ended or _trains(folder):
            wait = "Wait for the next save, or for the end of training."
            return Refusal(folder.name, "training goes on, and no complete one is newer", wait)
        over = "Wait for the next save; where training is over on all nodes, say so with --ended."
        return Refusal(folder.name, "training may go on, and no complete one is newer", over)
    return None


def _needed(root: Path) -> list[Path]:
    """Return what a living training must not lose: its newest complete one, and the newer ones it may be writing.

    A part of a node that is whole is taken for complete: the others may rightly lie on other disks.
    """
    steps = checkpoints.steps(root)
    whole = [step for step in steps if _whole_here(root / checkpoint_name(step))]
    return [root / checkpoint_name(step) for step in steps if not whole or step >= whole[-1]]


def _whole_here(folder: Path) -> bool:
    manifests = checkpoints.manifests(folder)
    faults = [checkpoints.own_faults(folder, m.node_rank) for m in manifests if not _brought(folder, m)]
    return bool(faults) and not any(faults)


def _brought(folder: Path, part: checkpoints.Manifest) -> bool:
    """Tell whether of this part just what an export reads is here: brought for one, the rest is on its own node."""
    here = {name for name in part.files if (folder / name).exists()}
    return here != {*part.files} and here == {name for name in part.files if name.startswith(EXPORT_READS)}


def _trains(folder: Path) -> bool:
    """Tell whether a supervisor of the attempt lives on this node, whatever the caller knows."""
    jobs = folder.parent.parent.glob("node*")
    return any(PidFile(JobFolder(PurePosixPath(job))).supervisor() is not None for job in jobs)
