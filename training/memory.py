"""How much memory a job may use here: the host's, or less where a container, its cgroup or a limit of its own says so.

Standard library only.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
PROCESS = Path("/proc/self")
# (limit, use, statistics, name of the reclaimable part in them) of cgroup v2 and v1
UNIFIED = ("memory.max", "memory.current", "memory.stat", "inactive_file")
FIRST = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file")
# What this process may map, and what of it may be written to, beside what it has: setrlimit(2), proc(5)
OWN_LIMITS = ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData"))


class Memory(NamedTuple):
    """Bytes."""

    total: int
    available: int


def memory(meminfo: Path = MEMINFO, cgroups: Path = CGROUPS, process: Path = PROCESS) -> Memory:
    """Return what there is and what is free of it; file caches count as free. The tightest of all limits counts."""
    kib = _numbers(meminfo, ":")
    found = Memory(kib["MemTotal"] * 1024, kib["MemAvailable"] * 1024)
    for limited in (*_of_groups(cgroups, process), *_of_process(process)):
        found = Memory(min(found.total, limited.total), min(found.available, max(0, limited.available)))
    return found


def _of_groups(cgroups: Path, process: Path) -> Iterator[Memory]:
    """Yield the share of each group that this process is in: its own, and all above it."""
    for controller, root, files in (("", "", UNIFIED), ("", "unified", UNIFIED), ("memory", "memory", FIRST)):
        path = group_of(process, controller)
        for part in (path, *path.parents):
            if limited := _limited(cgroups / root / part.relative_to("/"), *files):
                yield limited


def group_of(process: Path, controller: str) -> PurePosixPath:
    """Return this process's group: /proc/self/cgroup, cgroups(7). Not every container sees its own under this path."""
    try:
        lines = (process / "cgroup").read_text("ascii").splitlines()
    except OSError:
        return PurePosixPath("/")
    groups = (line.split(":", 2) for line in lines)
    found = next((path for _, names, path in groups if controller in names.split(",")), "/")
    return PurePosixPath(found) if found.startswith("/") and ".." not in found else PurePosixPath("/")


def _of_process(process: Path) -> Iterator[Memory]:
    for limit, used in OWN_LIMITS:
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            yield Memory(most, most - _numbers(process / "status", ":")[used] * 1024)


def _limited(group: Path, limit: str, use: str, statistics: str, reclaimable: str) -> Memory | None:
    """Return a cgroup's share; None where there is no limit."""
    try:
        most, used = int((group / limit).read_text("ascii")), int((group / use).read_text("ascii"))
        cache = _numbers(group / statistics, " ").get(reclaimable, 0)
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return Memory(most, most - used + cache)


def _numbers(path: Path, separator: str) -> dict[str, int]:
    """Return the lines that are a name and a number, whatever its unit."""
    pairs = (line.partition(separator)[::2] for line in path.read_text("ascii", "replace").splitlines())
    return {name: int(rest.split()[0]) for name, rest in pairs if rest.split() and rest.split()[0].isdigit()}
