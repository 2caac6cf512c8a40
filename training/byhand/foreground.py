"""Run a planned job here and now: its files put, its supervisor in this process, its log on the terminal."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..exitfile import Ending
from ..pidfile import PidFile
from ..spec import envfile
from ..spec.folder import JobFolder
from ..spec.lint import Problem, Refused
from ..spec.plan import NodePlan
from ..supervise import Supervisor

LOOK_SECONDS = 0.2
ASKED = "asked to stop: the step in hand is finished and saved; once more ends it now"


def run(plan: NodePlan) -> Ending:
    """Put the job's files, run it to its end and return that. Raises Refused where the folder is taken."""
    put(plan)
    lock = PidFile(plan.folder).lock()
    if lock is None:
        raise Refused([Problem("--attempt", "another process runs this attempt", "Leave it out, or take the next.")])
    with shown(plan.folder):
        return Supervisor(plan.folder, lock).run()


def put(plan: NodePlan) -> None:
    """Write the plan's files. Raises Refused where this attempt's folder is there already."""
    folder = Path(plan.folder.path)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Refused([Problem("--attempt", f"{folder} is there already", "Start it again.")]) from None
    for name, text in plan.files.items():
        (folder / name).write_text(text, "utf-8")
    with open(os.open(plan.folder.env, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(envfile.dump(plan.env))


@contextmanager
def shown(folder: JobFolder) -> Iterator[None]:
    """Copy the log to standard output while the block runs, all of it."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(folder, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(folder: JobFolder, ended: threading.Event) -> None:
    Path(folder.log).touch()
    told = False
    with Path(folder.log).open("rb") as log:
        last = False
        while not last:
            last = ended.wait(LOOK_SECONDS)  # what was written before the end is still read below
            if not told and Path(folder.stop).exists():
                told = _show(f"{ASKED}\n".encode())
            if (new := log.read()) and not _show(new):
                return


def _show(text: bytes) -> bool:
    """Return False where the terminal is gone: the job goes on without it."""
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except (OSError, ValueError):
        return False
    return True
