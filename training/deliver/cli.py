"""`python -m training deliver JOB.json`: bring one export that is proven to a folder, to S3 or to a hub.

Events: `progress` (phase check, send, verify), then `delivered`, then `finished` with its reason. Started again after
whatever end, it goes on: what is there already and has the right hash is not sent again.
Exit status: 0 when all of it is there, 1 otherwise, 2 where the job can't be read.
Secrets come from the environment alone: see training.spec.deliver.SECRETS.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ..journal import Journal
from ..spec.deliver import SECRETS, DeliverJob, HubTarget, PathTarget, S3Target, missing_secrets, parse_job
from ..spec.events import Kind
from ..spec.faults import Reason
from ..spec.forecast import gigabytes
from ..spec.lint import Refused
from .ends import failed, scrub, told
from .result import Delivered, Teller
from .source import Source, read_source, unlisted


def main(argv: list[str]) -> int:
    """Run the delivery that the file argv[0] describes."""
    path = _parser().parse_args(argv).job
    try:
        job = parse_job(path.read_bytes())
    except (OSError, Refused) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _stop)
    code = run(job)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python would wait here for parts that are under way when a delivery is stopped.
    os._exit(code)


def _parser() -> argparse.ArgumentParser:
    lines = []
    for model in (DeliverJob, PathTarget, S3Target, HubTarget):
        lines.append(f"{model.__name__}:")
        lines += [
            f"  {name:<14} {info.description or ''}{' (needed)' if info.is_required() else f' [{info.default!r}]'}"
            for name, info in model.model_fields.items()
        ]
    needs = "; ".join(f"{kind}: {', '.join((*needed, *also))}" for kind, (needed, also) in SECRETS.items() if needed)
    parser = argparse.ArgumentParser(
        prog="python -m training deliver",
        description="Bring a proven export to a folder, to S3-compatible storage or to a hub.",
        epilog="\n".join(["fields of the file:", *lines, "", f"environment variables: {needs}"]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", type=Path, help="JSON file that says what goes where")
    return parser


def run(job: DeliverJob) -> int:
    """Run `job`, say its end in its events, and return the exit status."""
    journal = Journal(Path(job.events))
    try:
        delivered = deliver(job, Teller(journal))
    except BaseException as error:  # noqa: BLE001  every end is told; of a fault of our own where it came from, too
        end = told(error)
        if end is None:
            print(scrub(traceback.format_exc()), file=sys.stderr)
            return 1
        print(f"deliver: {end[1]}", file=sys.stderr)
        journal.emit(Kind.FINISHED, reason=end[0], text=end[1])
        return 1
    journal.emit(Kind.DELIVERED, **delivered.as_dict())
    journal.emit(Kind.FINISHED, reason=Reason.COMPLETED)
    sent, there = gigabytes(delivered.bytes_sent), gigabytes(delivered.bytes_skipped)
    print(f"delivered: {len(delivered.files)} files, {sent} sent, {there} were there already: {delivered.where}")
    return 0


def deliver(job: DeliverJob, teller: Teller) -> Delivered:
    """Do all of it. Raises Refused, Failed or OSError."""
    if missing := missing_secrets(job.target.kind, os.environ):
        raise failed(Reason.CREDENTIALS, missing[0].field, missing[0].reason, missing[0].fix)
    source = read_source(Path(job.source))
    for name in unlisted(source):
        teller.warn(f"not delivered: {name} is in the folder and not in its proof")
    delivered = _send(job, source, teller)
    delivered.files = [file.as_dict() for file in source.all]
    return delivered


def _send(job: DeliverJob, source: Source, teller: Teller) -> Delivered:
    """Each way is imported when it is taken: a node that copies to a path needs no library of a storage."""
    if isinstance(job.target, PathTarget):
        from .path import send as to_path

        return to_path(source, job.target, teller, replace=job.replace)
    if isinstance(job.target, S3Target):
        from .s3.send import send as to_s3

        return to_s3(source, job.target, teller, replace=job.replace)
    from .hub.send import send as to_hub

    return to_hub(source, job.target, teller, replace=job.replace)


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(f"ended by signal {signum}")
