"""Cluster `bench`: one loopback host of the started service, whose interpreter starts the writer as the ranks.

Everything but the ranks is as in any run: the release, the preflight, the supervisor, SSH, the follower.
"""

from __future__ import annotations

import getpass
import shlex
import sys
from pathlib import Path

from tests.e2e.stack import Stack
from workers.local.hostkey import public_host_key
from workers.local.place import Place
from workers.local.ports import HOST

CLUSTER = "bench"
IDENTITY, INTERFACE = "loopback", "lo"  # as the launcher gives them to its own nodes
HOST_NAME = "node-a"
WRITER = Path(__file__).with_name("writer.py")
PYTHON = """#!/bin/sh
case "$2 $3" in "training tokenise") shift 4; exec "$@" ;; esac
case "$2" in accelerate.commands.launch) exec {python} {writer} "$@" ;; esac
exec {python} "$@"
"""


def add_node(stack: Stack) -> None:
    """Make the cluster, or change its node to what this start of the service needs."""
    place = Place(stack.state)
    folder = stack.state / "bench"
    folder.mkdir(exist_ok=True)
    python = launcher(folder)
    pinned = folder / "host_key.pub"
    pinned.write_text(public_host_key(place.node(HOST_NAME)) + "\n")
    stack.manage(
        "add_node", CLUSTER, f"{CLUSTER}-{HOST_NAME}", "--address", HOST, "--port", str(place.read_kept()[HOST_NAME]),
        "--user", getpass.getuser(), "--identity", IDENTITY, "--host-key", str(pinned), "--python", str(python),
        "--scratch", str(place.scratch(HOST_NAME)), "--cpu", "--interface", INTERFACE,
    )  # fmt: skip


def launcher(folder: Path) -> Path:
    """Make the interpreter in `folder`; return its path."""
    python = folder / "python"
    python.write_text(PYTHON.format(python=shlex.quote(sys.executable), writer=shlex.quote(str(WRITER))))
    python.chmod(0o755)
    return python


def job_folder(stack: Stack, run: int) -> Path:
    """Return the folder of the run's first attempt on the node."""
    return Path(Place(stack.state).scratch(HOST_NAME)) / "runs" / str(run) / "1" / "node0"
