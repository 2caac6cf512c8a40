"""`python -m training export JOB.json`: one export from the first check to the folder's name.

Events: `progress` (phase check, stream, prove), then `exported`, then `finished` with its reason.
Exit status: 0 when the folder is in its place, 1 otherwise.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..journal import Journal
from ..progress import Meter
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.forecast import gigabytes
from ..spec.job import ExportJob
from ..spec.jobfile import read_job
from ..spec.lint import Refused
from ..spec.passport import Passport
from . import manifest, place
from .narrow import narrow
from .opened import Opened, open_checkpoint
from .outcome import Damaged, Failure, reason_of, words
from .place import Written
from .record import fingerprint
from .space import check_disk


def main(argv: list[str]) -> int:
    """Run the export that the file argv[0] describes."""
    path = _parser().parse_args(argv).job
    try:
        job = read_job(ExportJob, path.read_bytes())
    except (OSError, Refused) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _stop)
    narrow()
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
        export(job, journal)
    except BaseException as error:  # every end is told; a fault of our own goes on up with its traceback
        reason = reason_of(error)
        if reason is None:
            raise
        print(f"export: {words(error)}", file=sys.stderr)
        journal.emit(Kind.FINISHED, reason=reason, text=words(error))
        return 1
    return 0


def export(job: ExportJob, journal: Journal) -> None:
    """Do all of it and tell it. Raises Refused, Failure or OSError."""
    out, checkpoint = Path(job.out), Path(job.checkpoint)
    if place.is_there(out):
        _tell_again(job, out, checkpoint, journal)
        return
    with manifest.staying(checkpoint), place.working(out) as work:
        opened = open_checkpoint(checkpoint, journal)
        exported = _export(job, opened, work, journal)
        work.settle(exported)
        _tell(exported, work, journal)


def _export(job: ExportJob, opened: Opened, work: place.Work, journal: Journal) -> dict[str, Any]:
    # torch and transformers take seconds to import: a checkpoint that is not whole is told before
    with opened.files.ahead():
        from .assemble import Assembly
        from .blueprint import load_config
        from .numbers import settled
        from .papers import read
        from .pinned import pinned

        config = load_config(job)
        asked = fingerprint(job, opened.files.identity)
        job = settled(pinned(job), config)
        assembly, known = Assembly(job, opened), read(job)
    durable = work.go_on(asked)  # not before: a job that is refused leaves alone what another one has written
    there = sum(done.size for done in durable.values())
    check_disk(assembly.bytes - there, shutil.disk_usage(work.folder).free, str(work.out.parent))
    try:
        written = assembly.write(work, durable, journal)
    except (Failure, Damaged):
        opened.files.check()  # where a shard is damaged, that is the reason
        raise
    return _prove(job, known, work.folder, written, assembly.memory, journal)


def _tell_again(job: ExportJob, out: Path, checkpoint: Path, journal: Journal) -> None:
    """Tell the end of an export that was killed when its folder had its name; raise Refused where it is none."""
    if not place.untold(out):
        place.refuse_existing(out)
    with manifest.staying(checkpoint):
        exported = place.proven(out, fingerprint(job, open_checkpoint(checkpoint, journal).files.identity))
    if exported is None:
        place.refuse_existing(out)
    else:
        _tell(exported, place.Work(out, out), journal)


def _tell(exported: dict[str, Any], work: place.Work, journal: Journal) -> None:
    journal.emit(Kind.EXPORTED, **exported)
    journal.emit(Kind.FINISHED, reason=Reason.COMPLETED)
    work.told()
    print(f"{summary(exported)}: {work.out}", flush=True)


def summary(exported: dict[str, Any]) -> str:
    """Return what came of it, for whoever looks on."""
    proof, count = exported["proof"], len(exported["files"])
    found = f"exported: {gigabytes(exported['bytes'])} in {count} files, {len(proof['checks'])} checks passed"
    difference = proof.get("largest_difference")
    return found if difference is None else f"{found}, largest difference of a logit {difference:g}"


def _prove(
    job: ExportJob, known: Passport, folder: Path, weights: Sequence[Written], size: int, journal: Journal
) -> dict[str, Any]:
    from . import papers
    from .proof import prove

    meter = Meter(journal, "prove", size)
    exported = papers.write(job, known, prove(job, folder, size), folder, weights)
    meter.add(size)
    meter.tell()
    return exported


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(f"ended by signal {signum}")
