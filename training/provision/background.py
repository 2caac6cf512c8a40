"""One making at a time for one folder: a lock that goes with its processes, and what they last said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..locked import lock as lock_of
from ..spec.venvfolder import VenvFolder

ROOT = Path(__file__).resolve().parents[2]
TAIL = 60  # lines
STOP_SECONDS = 10.0


def start(folder: VenvFolder) -> dict[str, Any]:
    """Start the making unless it goes on or is done; return the status."""
    if not Path(folder.order).is_file():
        raise ValueError(f"{folder.making} has no order: put its files there first")
    lock = take(folder)
    if lock is None:
        return status(folder)
    try:
        if Path(folder.complete).is_file():
            write(folder.exit, {"code": 0, "step": "", "seconds": 0})
        else:
            _spawn(folder, lock)
    finally:
        os.close(lock)
    return status(folder)


def _spawn(folder: VenvFolder, lock: int) -> None:
    for path in (folder.exit, folder.state):
        with suppress(FileNotFoundError):
            os.unlink(path)
    command = [sys.executable, "-m", "training", "provision", "run", str(folder.path), "--lock", str(lock)]
    with Path(folder.log).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=(lock,),
            start_new_session=True,
        )
    os.pwrite(lock, f"{process.pid}\n".encode().ljust(16), 0)


def take(folder: VenvFolder) -> int | None:
    """Return the lock, open; None where the making goes on."""
    return lock_of(Path(folder.lock))


def status(folder: VenvFolder) -> dict[str, Any]:
    """Return {"state": absent | running | ended | gone}, the present step with seconds, the last lines, the exit."""
    said = read(folder.state)
    now = time.time()
    told = {name: said.get(name, default) for name, default in (("step", ""), ("number", 0), ("of", 0), ("line", ""))}
    seconds = {name: max(0.0, now - said[since]) for name, since in SINCE.items() if since in said}
    exit = read(folder.exit)
    return {"state": _state(folder, exit), **told, **seconds, "tail": _tail(folder), "exit": exit}


SINCE = {"seconds": "began", "step_seconds": "step_began"}


def _state(folder: VenvFolder, exit: dict[str, Any]) -> str:
    if not Path(folder.lock).exists():
        return "absent"
    lock = take(folder)
    if lock is None:
        return "running"
    os.close(lock)
    return "ended" if exit or read(folder.exit) else "gone"


def _tail(folder: VenvFolder) -> list[str]:
    try:
        with Path(folder.log).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL * 400))
            return log.read().decode("utf-8", "replace").splitlines()[-TAIL:]
    except FileNotFoundError:
        return []


def stop(folder: VenvFolder) -> dict[str, Any]:
    """End the making with all its processes; return the status."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if not Path(folder.lock).exists() or _is_over(folder, how):
            break
    return status(folder)


def _is_over(folder: VenvFolder, how: signal.Signals) -> bool:
    """Signal the group for as long as the lock is held: a process id in a file that nobody locks may be another's."""
    limit = time.monotonic() + STOP_SECONDS
    lock = take(folder)
    if lock is None:
        with suppress(ValueError, OSError):
            os.killpg(int(Path(folder.lock).read_text()), how)
    while lock is None and time.monotonic() < limit:
        time.sleep(0.05)
        lock = take(folder)
    if lock is not None:
        os.close(lock)
    return lock is not None


def read(path: os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one where there is none."""
    try:
        return dict(json.loads(Path(path).read_text("utf-8")))
    except FileNotFoundError:
        return {}


def write(path: os.PathLike[str], content: dict[str, Any]) -> None:
    """Write it whole or not at all."""
    work = f"{os.fspath(path)}.tmp"
    Path(work).write_text(json.dumps(content), "utf-8")
    os.replace(work, path)
