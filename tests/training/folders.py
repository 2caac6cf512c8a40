"""Checkpoint folders for tests, and what is asked of one: which files, whose they are, whether every byte is right."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from training.saving import checkpoints
from training.saving.checkpoints import MANIFEST, FileFacts, Manifest, Metric
from training.spec.folder import HOLD, PIN
from training.spec.retention import judged
from training.spec.sections.checkpoints import Checkpoints

Metrics = dict[str, Metric]
SHARD = re.compile(r"(?:__(\d+)_\d+\.distcp|rng_state_(\d+)\.pth|window_(\d+)\.json)")
FILES = {
    0: ("pytorch_model_fsdp_0/__0_0.distcp", "rng_state_0.pth", "pytorch_model_fsdp_0/.metadata", "trainer_state.json"),
    1: ("pytorch_model_fsdp_0/__1_0.distcp", "rng_state_1.pth"),
}


def shard_rank(name: str) -> int | None:
    """Return the rank whose own file this is, or None for a file common to all."""
    found = SHARD.fullmatch(Path(name).name)
    return int(found[1] or found[2] or found[3]) if found else None


def file_names(folder: Path) -> list[str]:
    """Return the names of all files under `folder`, relative to it; manifests, holds and pins left out."""
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in files if not MANIFEST.fullmatch(name) and not name.startswith((HOLD, PIN)))


def measured(folder: Path, names: Iterable[str]) -> dict[str, FileFacts]:
    """Return size and hash of each file, for a manifest."""
    contents = {name: (folder / name).read_bytes() for name in names}
    return {name: FileFacts(size=len(c), sha256=hashlib.sha256(c).hexdigest()) for name, c in contents.items()}


def damage(folder: Path) -> list[str]:
    """Return what is wrong with a checkpoint, every byte of it read, as a resume reads it."""
    return checkpoints.faults(folder) or checkpoints.changed(folder, checkpoints.large_files(folder))


def part(
    root: Path,
    step: int,
    node: int,
    *,
    save: str = "s",
    manifest: bool = True,
    nodes: int = 2,
    metrics: Metrics | None = None,
) -> Path:
    """Write one node's part of a checkpoint."""
    folder = root / f"checkpoint-{step}"
    (folder / "pytorch_model_fsdp_0").mkdir(parents=True, exist_ok=True)
    for name in FILES[node]:
        (folder / name).write_text(f"{name} at {step}")
    if manifest:
        facts = measured(folder, FILES[node])
        described = Manifest(
            step=step, node_rank=node, nodes=nodes, world_size=2, save=save, metrics=metrics or {}, files=facts
        )
        checkpoints.write_manifest(folder, described)
    return folder


def whole(root: Path, step: int) -> Path:
    part(root, step, 0)
    return part(root, step, 1)


def doomed(root: Path, **rule: int) -> list[int]:
    """Return the steps that the first node would delete by a rule that keeps one, unless it says otherwise."""
    section = Checkpoints.model_validate({"keep": 1, **rule})
    found = checkpoints.seen(root, 0, section.best_metric)
    return [verdict.step for verdict in judged(found, section) if not verdict.kept]
