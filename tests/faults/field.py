"""Where the cases happen: a started service, its OpenSSH hosts, runs on them, and a person who reads the pages."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack, until
from training.spec.mark import MARK

from .books import Books
from .site import Site

ENDED = ("succeeded", "stopped", "failed")
ENDLESS = 100_000  # steps


class Field:
    """`hosts` are the nodes of `cluster`; runs take the first two."""

    def __init__(self, stack: Stack, cluster: str, hosts: list[SshHost]):
        self.stack, self.cluster, self.hosts = stack, cluster, hosts
        self.books, self.site = Books(stack, hosts), Site(stack)
        self.undo: list[Callable[[], object]] = []  # what is to be mended after a case, whatever became of it
        self.short: list[int] = []  # runs of this case alone
        self._long = 0

    def order(self, name: str, *, steps: int = ENDLESS, launch: bool = True, **recipe: dict[str, Any]) -> int:
        """Create a run of this case; return its id."""
        settings = {"optimisation": {"max_steps": steps}, "limits": {"stop_seconds": 60}} | recipe
        run = self.stack.api("POST", "/runs", {
            "name": name, "preset": "tiny", "model": "tiny-llama-5M", "dataset": "code-chat", "cluster": self.cluster,
            "recipe": settings, "launch": launch,
        })  # fmt: skip
        self.short.append(run["id"])
        return int(run["id"])

    def training(self, name: str, *, steps: int = ENDLESS, at: int = 2, **recipe: dict[str, Any]) -> int:
        """Return a run of this case in the middle of its training. The long run, if there is one, ends for it."""
        self.end_long()
        run = self.order(name, steps=steps, **recipe)
        self.reached(run, at)
        return run

    def long(self) -> int:
        """Return the run that goes on through all faults that a run survives, at work."""
        if not self._long or self.told(self._long)["state"] in ENDED:
            self._long = self.order("survives", checkpoints={"every_steps": 50, "keep": 1})
            self.short.remove(self._long)
            self.reached(self._long, 2)
        return self._long

    def end_long(self) -> int:
        """End it with a stop, if there is one; return its id, 0 where there was none."""
        run, self._long = self._long, 0
        if run and self.told(run)["state"] not in ENDED:
            self.stack.api("POST", f"/runs/{run}/stop")
            self.state(run, *ENDED)
        return run

    def told(self, run: int) -> dict[str, Any]:
        return self.stack.run(run)

    def state(self, run: int, *states: str, limit: float = 480) -> dict[str, Any]:
        """Return the run once it is in one of `states`."""

        def look() -> dict[str, Any] | None:
            seen = self.told(run)
            assert seen["state"] in states or seen["state"] not in ENDED, f"{seen['reason']}: {seen['reason_text']}"
            return seen if seen["state"] in states else None

        return until(f"run {run} to be {' or '.join(states)}", look, limit=limit)

    def reached(self, run: int, step: int, limit: float = 480) -> int:
        """Wait until the run has done `step`; return the step it has done."""

        def look() -> int:
            seen = self.told(run)
            assert seen["state"] not in ENDED, f"{seen['reason']}: {seen['reason_text']}"
            return seen["step"] if seen["step"] >= step else 0

        return until(f"step {step} of run {run}", look, limit=limit)

    def goes_on(self, run: int, steps: int = 2) -> None:
        """Wait until `steps` more were done, and shown."""
        self.reached(run, self.told(run)["step"] + steps)

    def noticed(self, what: str, look: Callable[[], object], limit: float = 480) -> float:
        """Return the seconds until `look` is true."""
        began = time.monotonic()
        until(what, look, limit=limit, pause=0.1)
        return time.monotonic() - began

    def of(self, run: int, host: SshHost) -> list[psutil.Process]:
        """Return the run's processes on `host`: supervisor, launcher, ranks."""
        mark = f"/runs/{run}/"
        return [p for p in host.processes() if mark in _environment(p).get(MARK, "") or mark in _supervised(p)]

    def supervisor(self, run: int, host: SshHost) -> psutil.Process:
        return next(p for p in self.of(run, host) if _supervised(p))

    def accelerate(self, run: int, host: SshHost) -> psutil.Process:
        return next(p for p in self.of(run, host) if "accelerate.commands.launch" in _words(p))

    def rank(self, run: int, host: SshHost) -> psutil.Process:
        return next(p for p in self.of(run, host) if _environment(p).get("LOCAL_RANK") == "0")

    def left(self, run: int) -> int | None:
        """Return how many processes of the run are left; None while it goes on."""
        if self.told(run)["state"] not in ENDED:
            return None
        return sum(len(self.of(run, host)) for host in self.hosts)

    def node(self, host: SshHost) -> dict[str, Any]:
        """Return the host's node as the API tells of it."""
        clusters = self.stack.api("GET", "/clusters")["items"]
        return next(node for cluster in clusters for node in cluster["nodes"] if node["name"] == host.name)

    def drain(self, host: SshHost) -> None:
        self._service(host, "0")

    def undrain(self, host: SshHost) -> None:
        self._service(host, "1")

    def _service(self, host: SshHost, value: str) -> None:
        self.site.post(f"/fleet/nodes/{self.node(host)['id']}/service", in_service=value, why="the fault matrix")
        assert self.node(host)["in_service"] == (value == "1")

    def plain(self, text: str) -> str:
        """Return what was seen without the names of the machine that it was seen on."""
        names = {str(self.stack.state): "STATE", sys.executable: "python", f" on {socket.gethostname()}": ""}
        for name, word in names.items():
            text = text.replace(name, word)
        return text

    def mend(self) -> None:
        """Put everything right again after a case, and end what it left behind."""
        while self.undo:
            self.undo.pop()()
        for run in self.short:
            if self.told(run)["state"] not in (*ENDED, "draft"):
                self._end(run)
        self.short.clear()

    def _end(self, run: int) -> None:
        if self.told(run)["state"] != "stopping":
            self.stack.api("POST", f"/runs/{run}/stop")
        for host in self.hosts:
            for process in self.of(run, host):
                if not _supervised(process):
                    process.send_signal(signal.SIGKILL)
        self.state(run, *ENDED)


def sshd(host: SshHost) -> list[psutil.Process]:
    """Return the host's sshd and its sessions."""
    return [process for process in host.processes() if _words(process)[0].startswith("sshd")]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [""]
    except psutil.Error:
        return [""]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def _supervised(process: psutil.Process) -> str:
    """Return the folder that a supervisor works for, "" where it is none."""
    words = _words(process)
    return words[4] + "/" if words[2:4] == ["training", "supervise"] else ""
