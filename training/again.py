"""Let a job that has ended be started once more in its folder: python -m training again FOLDER NUMBER

What its command left stays, for it to go on from; what its supervisor left (exit.json, pid, a request to stop) goes.
NUMBER counts the starts: asked twice for the same one, the second changes nothing, also when the job runs by then.
Prints {"state": as of status, "start": n}: a lower n than asked for where an earlier start is still at work.
Files of events go on with rising numbers; an exit line names its start.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .belonging import of_job
from .exitfile import ExitFile, start_number
from .journal import Journal
from .pidfile import PidFile
from .spec.events import Kind
from .spec.folder import JobFolder
from .status import state


def main(argv: list[str]) -> int:
    """Clear a job's folder for its next start; 1 with the reason where the disk refuses."""
    parser = argparse.ArgumentParser(prog="python -m training again", description="Ready an ended job for a new start.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("number", type=int)
    options = parser.parse_args(argv)
    try:
        print(json.dumps(again(JobFolder(options.folder.resolve()), options.number)))
    except OSError as error:
        print(f"again: {error}", file=sys.stderr)
        return 1
    return 0


def again(folder: JobFolder, number: int) -> dict[str, Any]:
    """Return {"state", "start"}."""
    if start_number(folder) < number:
        Path(folder.path).mkdir(parents=True, exist_ok=True)  # the one before may have died before putting anything
        _clear(folder, number)
    return {"state": state(folder), "start": start_number(folder)}


def _clear(folder: JobFolder, number: int) -> None:
    lock = PidFile(folder).lock()
    if lock is None:
        return
    try:
        if of_job(Path(folder.path)):
            return
        ExitFile(folder).path.unlink(missing_ok=True)
        Path(folder.stop).unlink(missing_ok=True)
        os.ftruncate(lock, 0)  # the lock is the file, which stays
        Journal(Path(folder.events)).emit(Kind.START, number=number)
        draft = Path(folder.start).with_suffix(".tmp")
        draft.write_text(f"{number}\n", "ascii")
        draft.replace(folder.start)  # last: whoever is killed before begins here again
    finally:
        os.close(lock)
