"""Stay with a lending server until it is not needed: `python -m training lend-keep SSHD PLACE IDLE_SECONDS`."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .place import Place

LOOK_SECONDS = 0.3
LIBC = ctypes.CDLL(None)  # loaded before there is a second process
DEATH_SIGNAL = 1


def main(argv: list[str]) -> int:
    """Run the server in the foreground and end it: when told so, when idle, when we are ended."""
    sshd, place, idle = argv[0], Place(argv[1]), float(argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    argv = [sshd, "-D", "-e", "-f", str(place.config)]
    server = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=_ends_with_its_keeper
    )
    try:
        _wait(server, place, idle)
        return server.returncode or 0
    finally:
        _end(server)
        if server.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM):  # else its last words are still to be read
            place.remove()


def _ends_with_its_keeper() -> None:
    """Have the kernel end the server when we are killed: nobody else knows of it (prctl, PR_SET_PDEATHSIG)."""
    LIBC.prctl(DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def _wait(server: subprocess.Popen[bytes], place: Place, idle: float) -> None:
    """Return when the server has ended or is to end."""
    quiet_since = time.monotonic()
    while server.poll() is None and place.config.exists() and not place.done.exists():
        if sessions(server.pid):
            quiet_since = time.monotonic()
        if time.monotonic() - quiet_since > idle:
            return
        time.sleep(LOOK_SECONDS)


def sessions(pid: int) -> list[int]:
    """Return the server's children: one for each connection."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def _end(server: subprocess.Popen[bytes]) -> None:
    for child in sessions(server.pid):
        _terminate(child)
    server.terminate()
    server.wait()


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
