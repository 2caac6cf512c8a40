"""Child processes that are kept alive while the launcher lives, and never outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

STEADY_SECONDS = 20.0  # a child that lived this long starts with a clean slate
QUICK_DEATHS = 6  # as many in a row and it will not come up by itself
BACK_OFF = (0.2, 1.0, 2.0, 4.0, 8.0)
LAST_LINES = 25
LOG_BYTES = 20 * 2**20

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Child:
    """One long-lived command. `grace`: seconds between TERM and KILL when it is ended."""

    name: str
    argv: tuple[str, ...]
    grace: float = 8.0


class GaveUp(Exception):
    """A child that ends at once, however often it is started."""


class Keeper:
    """Starts children, starts them again when they die, ends them."""

    def __init__(self, logs: Path, say: Callable[[str], None]):
        self.logs = logs
        self.say = say
        self._given_up: asyncio.Future[GaveUp] = asyncio.get_running_loop().create_future()
        self.running: dict[str, asyncio.subprocess.Process] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, children: Iterable[Child]) -> None:
        for child in children:
            self.tasks[child.name] = asyncio.create_task(self._keep(child), name=child.name)

    async def failure(self) -> None:
        """Wait until a child has to be given up; raise its GaveUp."""
        raise await self._given_up

    async def stop(self, children: Iterable[Child]) -> None:
        """End these, all at once: TERM, grace, KILL."""
        await asyncio.gather(*(self._stop(child) for child in children))

    async def _stop(self, child: Child) -> None:
        task, process = self.tasks.pop(child.name, None), self.running.pop(child.name, None)
        if task:
            task.cancel()
            await asyncio.wait([task])
        if process:
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(child.grace):
                    await process.wait()
            _signal_group(process, signal.SIGKILL)  # what the child itself started, and the child if it lingers
            await process.wait()

    async def _keep(self, child: Child) -> None:
        deaths = 0
        while True:
            began = asyncio.get_running_loop().time()
            process = await self._spawn(child)
            await process.wait()
            deaths = 1 if asyncio.get_running_loop().time() - began > STEADY_SECONDS else deaths + 1
            how = _ending(process.returncode)
            if deaths >= QUICK_DEATHS:
                self._give_up(f"{child.name} {how}, {deaths} times in a row.\n{self._last_lines(child)}")
                return
            delay = BACK_OFF[min(deaths, len(BACK_OFF)) - 1]
            self.say(f"{child.name} {how}; starting it again (log: {self.log(child)})")
            await asyncio.sleep(delay)

    def _give_up(self, why: str) -> None:
        if not self._given_up.done():
            self._given_up.set_result(GaveUp(why))

    async def _spawn(self, child: Child) -> asyncio.subprocess.Process:
        with _open_log(self.log(child)) as log:
            process = await asyncio.create_subprocess_exec(
                *child.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal reaches the launcher alone, which ends all in order
                preexec_fn=_end_with(os.getpid()),
            )
        self.running[child.name] = process
        return process

    def log(self, child: Child) -> Path:
        return self.logs / f"{child.name}.log"

    def _last_lines(self, child: Child) -> str:
        lines = self.log(child).read_text("utf-8", errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-LAST_LINES:])


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _end_with(parent: int) -> Callable[[], None]:
    """Return what a child does before exec so that the kernel ends it with its parent, even one killed with -9.

    The kernel watches the thread that forked: spawn from the main thread alone.
    """

    def before_exec() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before the line above
                os._exit(1)

    return before_exec


def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
