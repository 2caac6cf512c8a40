"""Which nodes and ranks a launch by hand has: this host's GPUs, or two ranks on CPU; more hosts where named."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from ..interfaces import interfaces
from ..preflight import preflight
from ..spec.lint import Problem, Refused
from ..spec.plan import NodeSlot
from ..spec.ports import free_port
from ..start import ROOT

LOOPBACK = "127.0.0.1"
ON_CPU = 2  # ranks that shard between them


def slots(scratch: Path, processes: int | None, nodes: str | None, rank: int) -> list[NodeSlot]:
    """Return a slot for each node; raise Refused where this node is not ready or not among them."""
    addresses = [address.strip() for address in nodes.split(",")] if nodes else [LOOPBACK]
    problems = _order_problems(addresses, rank, processes)
    here = preflight(scratch if scratch.exists() else scratch.parent)
    problems += [Problem(p["field"], p["reason"], p["fix"]) for p in here["problems"]]
    if problems:
        raise Refused(problems)
    gpus = visible(len(here["gpus"]), os.environ.get("CUDA_VISIBLE_DEVICES"))
    ranks = processes or gpus or ON_CPU
    if gpus and ranks > gpus:
        raise Refused([Problem("--processes", f"this node has {gpus} GPUs", "Give at most one rank a GPU.")])
    interface = _interface(addresses[rank])
    return [
        NodeSlot(f"node{n}", address, sys.executable, str(scratch), ranks, gpus > 0, interface)
        for n, address in enumerate(addresses)
    ]


def _order_problems(addresses: list[str], rank: int, processes: int | None) -> list[Problem]:
    found = []
    if not all(addresses) or len(set(addresses)) < len(addresses):
        found.append(Problem("--nodes", "an address is empty or there twice", "Name each node once."))
    if not 0 <= rank < len(addresses):
        why = f"there are {len(addresses)} nodes, and this is none of them"
        found.append(Problem("--rank", why, f"Give a number from 0 to {len(addresses) - 1}."))
    if processes is not None and processes < 1:
        found.append(Problem("--processes", f"it is {processes}", "Give 1 or more."))
    return found


def visible(gpus: int, setting: str | None) -> int:
    """Return how many of a node's GPUs CUDA_VISIBLE_DEVICES leaves; unset: all."""
    return gpus if setting is None else min(gpus, sum(1 for name in setting.split(",") if name.strip()))


def port(nodes: str | None, wanted: int | None) -> int:
    """Return the port at which ranks meet on the first node; raise Refused where several nodes could not agree."""
    if wanted is not None and not 0 < wanted < 65536:
        raise Refused([Problem("--port", f"{wanted} is no port", "Give a number from 1 to 65535.")])
    if nodes and "," in nodes and wanted is None:
        raise Refused([Problem("--port", "nodes must know where to meet", "Give one that is free on the first node.")])
    return wanted or free_port(LOOPBACK)


def _interface(address: str) -> str:
    """Return the network interface that has `address`; "": none has, as behind a translated address."""
    try:
        known = {str(info[4][0]) for info in socket.getaddrinfo(address, None)}
    except OSError:
        return ""
    return next((found["name"] for found in interfaces() if found["address"] in known), "")


def environment() -> dict[str, str]:
    """Return what ranks need besides: the way to this code."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
