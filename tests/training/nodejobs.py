"""Job folders with small scripts in them, and the node's commands run for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from training.spec.events import Event, parse
from training.spec.folder import JobFolder
from training.spec.job import Job

ROOT = Path(__file__).resolve().parents[2]
GENEROUS = 240.0


class NodeJob:
    """One job in a scratch folder below `root`."""

    def __init__(self, root: Path, *, run: int = 1):
        self.scratch = root / "scratch"
        self.path = self.scratch / "runs" / str(run) / "1" / "node0"
        self.folder = JobFolder(PurePosixPath(self.path))

    def put(self, script: str, *, grace: float = 5.0, env: str | None = None, words: tuple[str, ...] = ()) -> NodeJob:
        """Write job.json for a Python script; `env`: the env file's text."""
        self.path.mkdir(parents=True)
        argv = (sys.executable, "-c", script, *words)
        job = Job(argv=argv, sample_seconds=0.05, grace_seconds=grace, disk=str(self.scratch))
        Path(self.folder.job).write_text(job.model_dump_json())
        if env is not None:
            Path(self.folder.env).write_text(env)
            Path(self.folder.env).chmod(0o600)
        return self

    def command(self, *words: str) -> dict[str, Any]:
        """Run `python -m training WORDS` and return the JSON it prints."""
        done = call(*words)
        assert done.returncode == 0, done.stderr
        body: dict[str, Any] = json.loads(done.stdout)
        return body

    def start(self) -> dict[str, Any]:
        return self.command("start", str(self.path))

    def status(self) -> dict[str, Any]:
        return self.command("status", str(self.path))

    def signal(self, how: str) -> dict[str, Any]:
        return self.command("signal", str(self.path), how)

    def exit(self) -> dict[str, Any]:
        """Wait for the exit file and return it."""
        path = Path(self.folder.exit)
        until(path.exists)
        body: dict[str, Any] = json.loads(path.read_text())
        return body

    def samples(self) -> list[Event]:
        path = Path(self.folder.samples)
        return [parse(line) for line in path.read_text().splitlines()] if path.exists() else []

    def said(self, word: str) -> None:
        """Wait until `word` stands in the log."""
        until(lambda: Path(self.folder.log).exists() and word in Path(self.folder.log).read_text())

    def supervisor(self) -> int:
        pid: int = json.loads(Path(self.folder.pid).read_text())["pid"]
        return pid


def call(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | more
    return subprocess.run(
        [sys.executable, "-m", "training", *words], capture_output=True, text=True, check=False, env=environment
    )


def until(true: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + GENEROUS
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill9(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
