"""Stop or end jobs: python -m training signal FOLDER term|kill; python -m training stop-all SCRATCH

term: ask for a graceful stop; the ranks finish their step, save and end. kill: end now, wait until nothing of
the job is left. Both print {"processes": [pids still there]}. A job that never started will not start any more.
stop-all [--grace SECONDS] ends every job below a scratch folder and prints {"ended": [folders], "processes": [...]}:
with a grace it asks first, then waits so long for the saves, then kills.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path, PurePosixPath

from . import belonging, ending, processes
from .exitfile import Ending, ExitFile, conclude
from .pidfile import PidFile
from .processes import SHORT_GRACE, Identity
from .spec.faults import Reason
from .spec.folder import JobFolder
from .status import state

# What a living supervisor needs to end a job at once; after that it is taken for stuck.
SUPERVISOR_SECONDS = SHORT_GRACE + processes.KILL_SECONDS + 5.0


def main(argv: list[str]) -> int:
    """Signal one job; 1 where processes are left after a kill."""
    parser = argparse.ArgumentParser(prog="python -m training signal", description="Stop or end a job.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("how", choices=["term", "kill"])
    options = parser.parse_args(argv)
    folder = JobFolder(options.folder.resolve())
    try:
        left = term(folder) if options.how == "term" else kill(folder)
    except OSError as error:
        print(f"signal: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"processes": [process.pid for process in left]}))
    return 1 if left and options.how == "kill" else 0


def stop_all(argv: list[str]) -> int:
    """End every job below a scratch folder; 1 where processes are left."""
    parser = argparse.ArgumentParser(prog="python -m training stop-all", description="End all jobs of a scratch.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--grace", type=float, default=0.0, help="seconds to wait for a save before the kill")
    options = parser.parse_args(argv)
    scratch = options.scratch.resolve()
    folders = jobs_below(scratch)
    if options.grace:
        _ask_all(folders, options.grace)
    left: list[Identity] = []
    ended = []
    for folder in folders:
        try:
            left += kill(JobFolder(PurePosixPath(folder)))
            ended.append(str(folder))
        except (OSError, ValueError) as error:  # one that is stuck or damaged saves no other
            print(f"stop-all: {folder}: {error}", file=sys.stderr)
    print(json.dumps({"ended": ended, "processes": [process.pid for process in left]}))
    return 1 if left or len(ended) < len(folders) else 0


def _ask_all(folders: list[Path], grace: float) -> None:
    """Ask for a stop with a save and wait until all have ended, at most `grace` seconds."""
    for folder in folders:
        with suppress(OSError, ValueError):  # the kill that follows meets it again, and says so
            term(JobFolder(PurePosixPath(folder)))
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and any(_lives(JobFolder(PurePosixPath(folder))) for folder in folders):
        time.sleep(processes.POLL_SECONDS)


def _lives(folder: JobFolder) -> bool:
    """One whose supervisor vanished never says that it has ended, and is waited for no longer than its processes."""
    return PidFile(folder).supervisor() is not None or bool(belonging.of_job(Path(folder.path)))


def term(folder: JobFolder) -> list[Identity]:
    """Ask for a graceful stop; return the job's processes."""
    lock = _claim(folder)
    if lock is None:
        Path(folder.stop).touch()
        return belonging.of_job(Path(folder.path))
    try:
        if not _keep_from_starting(folder) and not ExitFile(folder).read():
            # the supervisor vanished; ranks that still live can save
            Path(folder.stop).touch()
    finally:
        os.close(lock)
    return belonging.of_job(Path(folder.path))


def kill(folder: JobFolder) -> list[Identity]:
    """End the job and return what outlived it: nothing, save a process in an uninterruptible wait."""
    lock = _claim(folder)
    if lock is None:
        _end_supervised(folder)
        lock = _claim(folder)
    if lock is None:
        raise OSError(f"the supervisor of {folder.path} outlived SIGKILL")
    try:
        _keep_from_starting(folder)
        left = processes.end(lambda: belonging.of_job(Path(folder.path)), SHORT_GRACE)
        if not ExitFile(folder).read():
            reason, text = ending.finished(folder)
            conclude(folder, Ending(reason or Reason.SUPERVISOR_LOST, text))
        return left
    finally:
        os.close(lock)


def jobs_below(scratch: Path) -> list[Path]:
    """Return the folders below `scratch` of jobs that run or left processes behind, sorted."""
    started = {path.parent for path in scratch.glob("runs/*/*/*/pid")}
    running = {folder for folder in started if state(JobFolder(PurePosixPath(folder))) in ("running", "lost")}
    return sorted(running | {folder for _, folder in processes.marked() if folder.is_relative_to(scratch)})


def _claim(folder: JobFolder) -> int | None:
    """Return the locked pid file's descriptor, or None where a supervisor lives."""
    Path(folder.path).mkdir(parents=True, exist_ok=True)
    found = PidFile(folder).lock_or_supervisor()
    return found if isinstance(found, int) else None


def _keep_from_starting(folder: JobFolder) -> bool:
    """Write the exit file of a job that never started; return False where it did. Call with the lock held."""
    if PidFile(folder).read():
        return False
    if not ExitFile(folder).read():
        conclude(folder, Ending(Reason.STOPPED_UNSAVED, "asked to stop before it began"))
    return True


def _end_supervised(folder: JobFolder) -> None:
    """Let the supervisor end its job at once; end it itself where it is stuck or stopped."""
    supervisor = PidFile(folder).supervisor()
    if supervisor:
        supervisor.send(signal.SIGUSR1)
        _wait_for_end(supervisor, SUPERVISOR_SECONDS)
        supervisor.send(signal.SIGKILL)
        _wait_for_end(supervisor, processes.KILL_SECONDS)


def _wait_for_end(supervisor: Identity, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while supervisor.alive() and time.monotonic() < deadline:
        time.sleep(processes.POLL_SECONDS)
