"""A checkpoint as an export finds it: complete by its manifests and sizes, its small files compared with their hashes.

The shards' own bytes are compared as they are read (shards.checked), before the result gets its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..journal import Journal
from ..progress import Meter
from ..spec.events import Kind
from ..spec.lint import Problem
from . import manifest
from .outcome import Damaged, refuse
from .shards.checked import Files


@dataclass(frozen=True)
class Opened:
    """`checked`: bytes that have been compared already."""

    folder: Path
    step: int
    files: Files
    checked: int


def open_checkpoint(folder: Path, journal: Journal) -> Opened:
    """Raise Damaged unless all that the export reads is there in its size, and its description as it was written.

    Files that an export doesn't read (the optimizer's are twice the model's) may lie on another node alone; where one
    is here in another size, that is a warning: the model is whole without it.
    """
    if not folder.is_dir():
        raise Damaged([Problem("checkpoint", f"{folder} {manifest.ABSENT}", manifest.THERE)])
    parts = manifest.manifests(folder)
    files = manifest.merged(parts)
    model = {name: entry for name, entry in files.items() if name.startswith(manifest.READ)}
    if f"{manifest.MODEL_FOLDER}/{manifest.METADATA}" not in model:
        raise refuse("checkpoint", f"{folder.name} holds no sharded model", "Choose a SHARDED_STATE_DICT checkpoint.")
    for problem in manifest.size_problems(
        folder, {n: e for n, e in files.items() if n not in model and (folder / n).exists()}
    ):
        journal.emit(Kind.WARNING, text=f"not needed for the export: {problem.field} {problem.reason}")
    if problems := manifest.size_problems(folder, model):
        raise Damaged(problems)
    return Opened(folder, parts[0].step, *_compared(Files(folder, model), journal))


def _compared(files: Files, journal: Journal) -> tuple[Files, int]:
    """Compare all but the shards: they are read as what they say, the one of them being a pickle."""
    small = [file for name, file in files.items() if not name.endswith(".distcp")]
    meter = Meter(journal, "check", sum(file.facts.size for file in small))
    for file in small:
        file.hash_to(file.facts.size, meter.add)
    if found := [problem for file in small if (problem := file.problem())]:
        raise Damaged(found)
    meter.tell()
    return files, meter.done
