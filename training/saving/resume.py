"""Before going on from a checkpoint: which one, is every byte of it here on every node, and what of it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..ranks import Ranks
from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused
from . import checkpoints, disks, progress
from .bad import BadCheckpoint
from .restored import ANOTHER, Resume, Skipped, fates


def find_resume(job: TrainJob, ranks: Ranks) -> Resume | None:
    """Return what to go on from; None where training begins afresh. All ranks must call, and raise alike.

    `job.resume_from` is one checkpoint, or the folder of several: then it is the newest that is complete on
    all nodes. Every byte is compared with its hash, each rank reading its share. Raises BadCheckpoint, and
    Refused where the recipe has no step left to take.
    """
    if not job.resume_from:
        return None
    place = Path(job.resume_from)
    if checkpoints.NAME.fullmatch(place.name):
        step, torn = _chosen(place, ranks)
    else:
        step, torn = _newest(place, ranks)
        place = place / f"checkpoint-{step}"
    return _resume(job, place, step, torn, ranks)


def _chosen(folder: Path, ranks: Ranks) -> tuple[int, list[Skipped]]:
    if found := _faults(folder, ranks):
        first = found[0]
        raise _refused(f"{folder.name} on node {first.node_rank}: {first.fault}")
    step = int(folder.name.rpartition("-")[2])
    newer = [_own_fault(folder.parent, other, ranks) for other in _steps(folder.parent, ranks) if other > step]
    return step, [skipped for one in newer for skipped in one]


def _newest(root: Path, ranks: Ranks) -> tuple[int, list[Skipped]]:
    torn: list[Skipped] = []
    for step in _steps(root, ranks):
        if not (found := _faults(root / f"checkpoint-{step}", ranks)):
            return step, torn
        torn += found
    seen = "; ".join(f"{one.name} on node {one.node_rank}: {one.fault}" for one in torn) or "there is none"
    raise _refused(f"{root} holds no complete checkpoint: {seen}")


def _steps(root: Path, ranks: Ranks) -> list[int]:
    """Return the steps of all checkpoint folders that some node has, newest first."""
    found = ranks.gather(checkpoints.steps(root) if ranks.is_local_main else [])
    return sorted({step for steps in found for step in steps}, reverse=True)


def _faults(folder: Path, ranks: Ranks) -> list[Skipped]:
    """Return the first fault that each node sees, if any: by sizes, then byte by byte, shared over its readers."""
    quick = checkpoints.faults(folder) if ranks.is_local_main and folder.is_dir() else []
    absent = [] if folder.is_dir() else ["it is not there"]
    if found := _per_node(folder, absent or quick, ranks):
        return found
    readers = disks.readers(folder.parent, ranks)
    share = checkpoints.large_files(folder)[readers.index(ranks.rank) :: len(readers)]
    return _per_node(folder, checkpoints.changed(folder, share), ranks)


def _own_fault(root: Path, step: int, ranks: Ranks) -> list[Skipped]:
    """Return the first fault of each node's own part: parts of others may rightly lie elsewhere."""
    folder = root / f"checkpoint-{step}"
    mine = checkpoints.own_faults(folder, ranks.node_rank) if ranks.is_local_main and folder.is_dir() else []
    return _per_node(folder, mine, ranks)


def _per_node(folder: Path, faults: list[str], ranks: Ranks) -> list[Skipped]:
    told = ranks.gather(faults[0] if faults else "")
    first: dict[int, str] = {}
    for node, fault in zip(ranks.node_ranks, told, strict=True):
        if fault:
            first.setdefault(node, fault)
    return [Skipped(folder.name, node, fault) for node, fault in first.items()]


def _resume(job: TrainJob, folder: Path, step: int, torn: list[Skipped], ranks: Ranks) -> Resume:
    manifests = list(_manifests(folder))
    saved_on, names = manifests[0].world_size, {name for manifest in manifests for name in manifest.files}
    parts = fates(folder, names, saved_on, ranks.world_size, frozenset(job.fresh))
    _check_step(job, folder, step)
    same = saved_on == ranks.world_size and progress.window_name(ranks.rank) in names
    resume = Resume(
        folder,
        step,
        saved_on,
        ranks.world_size,
        parts,
        torn,
        progress.read(folder) if progress.NAME in names else None,
        progress.read_window(folder, ranks.rank) if same else None,
        dict(manifests[0].metrics),
    )
    how = job.recipe.optimisation
    if how.epochs:
        resume.check_epochs(how.per_device_batch * how.accumulation * ranks.world_size)
    return resume


def _manifests(folder: Path) -> Iterator[checkpoints.Manifest]:
    node, first = 0, checkpoints.read_manifest(folder, 0)
    assert first, folder  # it was found complete
    while node < first.nodes:
        manifest = checkpoints.read_manifest(folder, node)
        assert manifest, (folder, node)
        yield manifest
        node += 1


def _check_step(job: TrainJob, folder: Path, step: int) -> None:
    how = job.recipe.optimisation
    if not how.epochs and step >= how.max_steps:
        reason = f"it is {how.max_steps} and {folder.name} has taken as many steps"
        raise Refused([Problem("optimisation.max_steps", reason, "Raise it, or choose an earlier checkpoint.")])


def _refused(reason: str) -> BadCheckpoint:
    return BadCheckpoint([Problem("resume_from", reason, ANOTHER)])
