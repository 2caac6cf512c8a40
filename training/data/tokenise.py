"""Tokenise a job's data before its ranks start: python -m training tokenise RECIPE.json [COMMAND ...]

Makes the artefact where it isn't there (once per node; on a shared disk once in all), tells of it in the job's
events, and then becomes COMMAND, if one is given: the job stays one process from its supervisor's side. Exit
status 1 where it can't be made: the event `finished` says why.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import datasets

from ..endings import Ended, print_error, reason_for, sentence
from ..journal import Journal
from ..loading.tokenizer import load_tokenizer
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.job import TrainJob
from .read import read

PARALLEL = "TOKENIZERS_PARALLELISM"  # off in the environment of ranks, which fork


def main(argv: list[str]) -> int:
    """Tokenise, then run the command; return the exit status where there is none or it failed."""
    try:
        path, *command = argv
        job = TrainJob.model_validate_json(Path(path).read_bytes())
    except (ValueError, OSError) as error:
        print(f"usage: python -m training tokenise <recipe.json> [command ...]\n{error}", file=sys.stderr)
        return 2
    with _in_parallel():
        made = _made(job, Journal(job.events))
    if not made:
        return 1
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execvp(command[0], command) if command else 0  # noqa: S606  the job's own argument list


@contextmanager
def _in_parallel() -> Iterator[None]:
    """Let the tokenizer use every core, here alone."""
    before = os.environ.get(PARALLEL)
    os.environ[PARALLEL] = "true"
    yield
    os.environ.pop(PARALLEL) if before is None else os.environ.update({PARALLEL: before})


def _made(job: TrainJob, journal: Journal) -> bool:
    if job.node_rank and job.model.startswith("/") and not Path(job.model).is_dir():
        return True  # the ranks get the tokenizer from the first node, and make it then
    story = journal if job.node_rank == 0 else None
    try:
        datasets.disable_progress_bars()
        read(job, load_tokenizer(job), story, lambda: heed_stop(job))
        heed_stop(job)
    # Whatever it was is told before this process is gone.
    except Exception as error:  # noqa: BLE001
        print_error(error)
        journal.emit_first(Kind.FINISHED, reason=reason_for(error), text=sentence(error))
        return False
    return True


def heed_stop(job: TrainJob) -> None:
    """Raise Ended where this job is asked to stop."""
    if Path(job.folder.stop).exists():
        raise Ended(Reason.STOPPED_UNSAVED, "asked to stop before training began")
