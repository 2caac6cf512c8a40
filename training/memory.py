"""How much memory a job may use here: the host's, or less where a container limits it. Standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
# (limit, use, statistics, name of the reclaimable part in them) of cgroup v2 and v1, as seen from inside a container
FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)


class Memory(NamedTuple):
    """Bytes."""

    total: int
    available: int


def memory(meminfo: Path = MEMINFO, cgroups: Path = CGROUPS) -> Memory:
    """Return what there is and what is free of it; file caches count as free."""
    kib = {name: int(rest.split()[0]) for name, _, rest in _split(meminfo, ":")}
    host = Memory(kib["MemTotal"] * 1024, kib["MemAvailable"] * 1024)
    for files in FILES:
        limited = _limited(cgroups, *files)
        if limited and limited.total < host.total:
            return Memory(limited.total, max(0, min(limited.available, host.available)))
    return host


def _limited(cgroups: Path, limit: str, use: str, statistics: str, reclaimable: str) -> Memory | None:
    """Return a cgroup's share; None where there is no limit."""
    try:
        most, used = int((cgroups / limit).read_text("ascii")), int((cgroups / use).read_text("ascii"))
        cache = next((int(value) for name, _, value in _split(cgroups / statistics, " ") if name == reclaimable), 0)
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return Memory(most, most - used + cache)


def _split(path: Path, separator: str) -> list[tuple[str, str, str]]:
    return [line.partition(separator) for line in path.read_text("ascii").splitlines()]
