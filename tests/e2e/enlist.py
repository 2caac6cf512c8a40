"""OpenSSH hosts as the nodes of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .ssh_hosts import SshHost, ssh_hosts
from .stack import Stack


@contextmanager
def enlisted(
    stack: Stack, cluster: str, folder: Path, count: int = 2, *, shared: bool = False
) -> Iterator[list[SshHost]]:
    """Start `count` hosts and make them the nodes `<cluster>-1`, `<cluster>-2`, ... of `cluster`."""
    key = stack.manage("make_identity", cluster).strip().splitlines()[-1]
    with ssh_hosts(folder, key, count, shared=shared) as hosts:
        for number, host in enumerate(hosts, 1):
            host.name = f"{cluster}-{number}"
            enlist(stack, cluster, host)
        yield hosts


def enlist(stack: Stack, cluster: str, host: SshHost, *, python: str = sys.executable, **changes: str) -> None:
    """Add `host` to the cluster, or describe it anew: `changes` are options of `manage.py add_node`."""
    options = {"address": host.address, "port": "22", "interface": "eth0", "scratch": "/scratch"} | changes
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    stack.manage(
        "add_node", cluster, host.name, "--user", "root", "--identity", cluster, "--python", python, "--cpu",
        "--host-key", str(host.key.with_suffix(".pub")), *words,
    )  # fmt: skip
