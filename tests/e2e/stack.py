"""The whole service, started as a person starts it: `python -m workers.local up`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

from training.spec.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "a-password-for-tests"
T = TypeVar("T")

# What the launcher's children are called, by a word of their command lines.
CHILDREN = {
    "worker": "celery",
    "follower": "workers.follow",
    "web": "uvicorn",
    "redis": "redis-server",
    "beat": " beat ",
}


def until(what: str, look: Callable[[], T], *, limit: float = 600, pause: float = 0.2) -> T:
    """Return the first true value of `look`. `limit` (seconds) only ends a test that would hang."""
    end = time.monotonic() + limit
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}; last seen: {found!r}")
        time.sleep(pause)
    return found


class Stack:
    """A started service. `state` is its folder, `url` its address, `token` an API token of the admin."""

    def __init__(self, state: Path):
        self.state, self.port = state, free_port("127.0.0.1")
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = os.environ | {
            "SHARDBOARD_STATE": str(state),
            "SHARDBOARD_PORT": str(self.port),
            "SHARDBOARD_ADMIN_PASSWORD": PASSWORD,
        }
        self.launcher: subprocess.Popen[bytes] | None = None
        self.token = ""

    def start(self, what: str = "up") -> None:
        """Start `up` or `demo` and wait until it is healthy."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "launcher.log").open("ab") as log:
            self.launcher = subprocess.Popen(
                [sys.executable, "-m", "workers.local", what],
                cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until("the service to be healthy", self.healthy)
        self.token = self.token or self.manage("create_token", "admin").strip()

    def healthy(self) -> bool:
        assert self.launcher is not None
        if self.launcher.poll() is not None:
            raise AssertionError(f"the launcher ended: {(self.state / 'launcher.log').read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Press Ctrl-C, and hold the launcher to its word: nothing is left running."""
        if self.launcher is None:
            return
        mine = psutil.Process(self.launcher.pid).children(recursive=True)
        self.launcher.send_signal(signal.SIGINT)
        self.launcher.wait(timeout=180)
        self.launcher = None
        _, left = psutil.wait_procs(mine, timeout=60)
        assert not left, f"left running: {[p.cmdline() for p in left]}"

    def child(self, name: str) -> psutil.Process:
        """Return the launcher's child of that name."""
        assert self.launcher is not None
        for process in psutil.Process(self.launcher.pid).children():
            words = " ".join(process.cmdline())
            if CHILDREN[name] in words and not (name == "worker" and " beat" in words):
                return process
        raise LookupError(name)

    def kill(self, name: str) -> int:
        """End a child as the kernel would; return its process id once it is gone."""
        process = self.child(name)
        process.kill()
        process.wait(timeout=10)
        return process.pid

    def manage(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.env, input=stdin, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def api(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Any:
        """Return the JSON answer; an error answer becomes an AssertionError with its text."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | (headers or {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def run(self, run: int) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", f"/runs/{run}")
        return found

    def wait_for_state(self, run: int, *states: str, limit: float = 600) -> dict[str, Any]:
        """Return the run once it is in one of `states`; an end that isn't asked for fails at once."""

        def look() -> dict[str, Any] | None:
            seen = self.run(run)
            if seen["state"] == "failed" and "failed" not in states:
                raise AssertionError(f"run {run} failed: {seen['reason']}: {seen['reason_text']}")
            return seen if seen["state"] in states else None

        return until(f"run {run} to be {' or '.join(states)}", look, limit=limit)
