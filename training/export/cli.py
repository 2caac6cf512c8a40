"""`python -m training export JOB.json`: one export from the first check to the folder's name.

Events: `progress` (phase check, stream, prove), then `exported`, then `finished` with its reason.
Exit status: 0 when the folder is in its place, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pydantic import ValidationError

from ..adapters.names import CONFIG
from ..journal import Journal
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.job import ExportJob
from ..spec.lint import Problem
from . import manifest, place
from .meter import Meter
from .outcome import Damaged, reason_of, refuse
from .space import check_disk

# What an export reads of a checkpoint: the model's shards, and what there is of an adapter.
READ = (f"{manifest.MODEL_FOLDER}/", CONFIG)


def main(argv: list[str]) -> int:
    """Run the export that the file argv[0] describes."""
    path = _parser().parse_args(argv).job
    try:
        job = ExportJob.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _stop)
    return run(job)


def _parser() -> argparse.ArgumentParser:
    fields = ExportJob.model_fields.items()
    lines = [
        f"  {name:<18} {info.description or ''}{' (needed)' if info.is_required() else f' [{info.default!r}]'}"
        for name, info in fields
    ]
    parser = argparse.ArgumentParser(
        prog="python -m training export",
        description="Turn a sharded checkpoint into a proven model folder.",
        epilog="\n".join(["fields of the file:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", type=Path, help="JSON file that says what is exported where; not a recipe")
    return parser


def run(job: ExportJob) -> int:
    """Run `job`, say its end in its events, and return the exit status."""
    journal = Journal(Path(job.events))
    try:
        exported = export(job, journal)
    except BaseException as error:  # every end is told; a fault of our own goes on up with its traceback
        reason = reason_of(error)
        if reason is None:
            raise
        print(f"export: {error}", file=sys.stderr)
        journal.emit(Kind.FINISHED, reason=reason, text=str(error))
        return 1
    journal.emit(Kind.EXPORTED, **exported)
    journal.emit(Kind.FINISHED, reason=Reason.COMPLETED)
    return 0


def export(job: ExportJob, journal: Journal) -> dict[str, Any]:
    """Do all of it; return the data of the `exported` event. Raises Refused, Failure or OSError."""
    out = Path(job.out)
    place.clear(out)
    checkpoint = Path(job.checkpoint)
    with manifest.staying(checkpoint):
        return _export(job, checkpoint, out, journal)


def _export(job: ExportJob, checkpoint: Path, out: Path, journal: Journal) -> dict[str, Any]:
    step = check_checkpoint(checkpoint, journal)
    # torch and transformers take seconds to import: a damaged checkpoint is told before
    from .assemble import Assembly
    from .blueprint import load_config
    from .numbers import settled

    job = settled(job, load_config(job))
    assembly = Assembly(job)
    needed = sum(file.size for file in assembly.files)
    check_disk(needed, shutil.disk_usage(out.parent).free, str(out.parent))
    with place.working(out) as folder:
        written = assembly.write(folder, journal)
        return _prove(job, step, folder, written, assembly.memory, journal)


def check_checkpoint(folder: Path, journal: Journal) -> int:
    """Raise Damaged unless all that the export reads is as it was written; return the checkpoint's step.

    Of the files that an export doesn't read (the optimizer's are twice the model's) only the sizes are
    looked at, and what is wrong there is a warning: the model is whole without them.
    """
    if not folder.is_dir():
        raise Damaged([Problem("checkpoint", f"{folder} {manifest.GONE}", manifest.NEWER)])
    parts = manifest.manifests(folder)
    files = manifest.merged(parts)
    model = {name: entry for name, entry in files.items() if name.startswith(READ)}
    if f"{manifest.MODEL_FOLDER}/{manifest.METADATA}" not in model:
        raise refuse("checkpoint", f"{folder.name} holds no sharded model", "Choose a SHARDED_STATE_DICT checkpoint.")
    for problem in manifest.size_problems(folder, {n: e for n, e in files.items() if n not in model}):
        journal.emit(Kind.WARNING, text=f"not needed for the export: {problem.field} {problem.reason}")
    if problems := manifest.size_problems(folder, model):
        raise Damaged(problems)
    meter = Meter(journal, "check", sum(entry.size for entry in model.values()))
    manifest.check_contents(folder, model, meter.add)
    return parts[0].step


def _prove(
    job: ExportJob, step: int, folder: Path, weights: Sequence[Any], size: int, journal: Journal
) -> dict[str, Any]:
    from .proof import NAME, prove

    meter = Meter(journal, "prove", size)
    proof = prove(job, folder, size)
    known = {file.name: file for file in weights}
    files = [known.get(p.name) or place.record(p) for p in sorted(folder.iterdir())]
    listed = [file.as_dict() for file in files]
    full = {
        "checkpoint": Path(job.checkpoint).name,
        "step": step,
        "dtype": job.dtype,
        "adapter": job.adapter,
        "files": listed,
        **proof,
    }
    (folder / NAME).write_text(json.dumps(full, indent=2) + "\n", "utf-8")
    listed.append(place.record(folder / NAME).as_dict())
    meter.add(size)
    meter.tell()
    return {"bytes": sum(f["size"] for f in listed), "dtype": job.dtype, "files": listed, "proof": proof}


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(f"ended by signal {signum}")
