"""Start a job's supervisor in the background, once: python -m training start FOLDER

Prints {"state": "started" | "running" | "ended" | "lost", "pid": n} when the pid file is written. Called again,
or by two callers at once, there is one supervisor; a job that has ended, or whose supervisor vanished, is
not started again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .exitfile import ExitFile
from .pidfile import PidFile
from .spec.folder import JobFolder
from .spec.lint import Problem, Refused
from .spec.mark import MARK

ROOT = Path(__file__).resolve().parents[1]


def main(argv: list[str]) -> int:
    """Start, or say what is there; 1 with the reason where it can't be."""
    parser = argparse.ArgumentParser(prog="python -m training start", description="Start a job in the background.")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(argv)
    try:
        print(json.dumps(start(JobFolder(options.folder.resolve()))))
    except (OSError, ValueError) as error:
        print(f"start: {error}", file=sys.stderr)
        return 1
    return 0


def start(folder: JobFolder) -> dict[str, Any]:
    """Return {"state", "pid"}; raise Refused where the folder holds no job."""
    pid_file = PidFile(folder)
    if ExitFile(folder).read():
        return _state("ended", pid_file)
    if not Path(folder.job).is_file():
        raise Refused([Problem("job.json", f"{folder.path} has none", "Put the job's files there first.")])
    lock = pid_file.lock_or_supervisor()
    if not isinstance(lock, int):
        return _state("running", pid_file)
    try:
        if ExitFile(folder).read():
            return _state("ended", pid_file)
        if pid_file.read():
            return _state("lost", pid_file)
        _spawn(folder, lock)
    finally:
        os.close(lock)
    return _state("started", pid_file)


def _spawn(folder: JobFolder, lock: int) -> None:
    """Start `supervise` in a session of its own, hand it the lock, and return when it has written the pid file."""
    read, write = os.pipe()
    command = [sys.executable, "-m", "training", "supervise", str(folder.path), f"--lock={lock}", f"--ready={write}"]
    with Path(folder.log).open("ab") as log, os.fdopen(read, "rb") as ready:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=folder.path,
            env=_environment(),
            pass_fds=(lock, write),
            start_new_session=True,
        )
        os.close(write)
        if not ready.read(1):
            raise OSError(f"the supervisor did not come up; see {folder.log}")


def _environment() -> dict[str, str]:
    """Return this environment with our code on the path and no other job's mark."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {name: value for name, value in os.environ.items() if name != MARK} | {"PYTHONPATH": path}


def _state(state: str, pid_file: PidFile) -> dict[str, Any]:
    supervisor = pid_file.read()
    return {"state": state, "pid": supervisor.pid if supervisor else None}
