"""`python -m training answer JOB.json`: each model answers each prompt, and what it says is told as it comes.

Everything is looked at before a weight is read: configuration, tokenizer, prompts, memory. Then, for one model after
the other: `model` (loading, ready), `token` lines in small batches, an `answer` for each prompt; `finished` at the
end. A limit on time and a request to stop hold in the middle of a token, of a prompt being read and of a model being
loaded, too. Exit status: 0 when every answer came to its own end, 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..journal import Journal
from ..spec.answer import AnswerJob, Asked, Prompt, Sampling
from ..spec.faults import Reason
from ..spec.jobfile import read_job
from ..spec.lint import Refused
from .course import Course
from .limits import Guard, Limits

FIELDS = (AnswerJob, Asked, Prompt, Sampling)


def main(argv: list[str]) -> int:
    """Answer what the file argv[0] asks."""
    options = _parser().parse_args(argv)
    path = options.job
    try:
        job = read_job(AnswerJob, path.read_bytes())
    except (OSError, Refused) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    os.nice(job.nice)
    limits = Limits(Path(job.events), job.seconds)
    limits.heed_signals()
    course = Course(job, Journal(Path(job.events)), show=_print if options.print else None)
    with Guard(limits, course):
        return run(job, course, limits)


def _parser() -> argparse.ArgumentParser:
    lines = [line for kind in FIELDS for line in _described(kind)]
    parser = argparse.ArgumentParser(
        prog="python -m training answer",
        description="Let models answer prompts, side by side.",
        epilog="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", type=Path, help="JSON file that says who is asked what")
    parser.add_argument("--print", action="store_true", help="print what is said, too, as it comes")
    return parser


def _print(text: str) -> None:
    print(text, end="", flush=True)


def _described(kind: type[AnswerJob | Asked | Prompt | Sampling]) -> Sequence[str]:
    fields = kind.model_fields.items()
    return [f"fields of {kind.__name__}:", *(f"  {name:<18} {info.description or ''}" for name, info in fields)]


def run(job: AnswerJob, course: Course, limits: Limits) -> int:
    """Let them answer, say the end in the events, and return the exit status."""
    try:
        # Tens of seconds on a busy node: the guard is at work already.
        from .answers import answers

        answers(job, course, limits)
    except Refused as refused:
        print(f"answer: {refused}", file=sys.stderr)
        course.end(Reason.CONFIGURATION, str(refused))
        return 1
    except MemoryError as error:
        course.end(Reason.KILLED_BY_HOST, f"out of memory: {error}")
        return 1
    if why := course.cut_by:
        course.end(*why)
        return 1
    course.end(Reason.COMPLETED, "")
    return 0
