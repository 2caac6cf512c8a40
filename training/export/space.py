"""Room on the result's file system and in memory, asked for before anything is written."""

from __future__ import annotations

from pathlib import Path

from ..spec.lint import Problem
from .outcome import NoRoom

COMPANIONS = 64 << 20  # config, tokenizer and proof together; the largest tokenizers are about 35 MB
CGROUP = Path("/sys/fs/cgroup")


def check_disk(needed: int, free: int, where: str) -> None:
    """Raise NoRoom where `needed` bytes of weights and their companions do not fit into `free` bytes."""
    total = needed + COMPANIONS
    if total > free:
        raise NoRoom(
            [Problem("out", f"{total:,} bytes are needed in {where} and {free:,} are free", "Free space there.")]
        )


def memory_available(meminfo: str, limit: str = "max", used: str = "0") -> int:
    """Return the bytes of memory a new process may take: the machine's, or what its control group leaves.

    `meminfo` is the text of /proc/meminfo; `limit` and `used` are memory.max and memory.current.
    """
    lines = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    machine = int(lines["MemAvailable"].split()[0]) * 1024
    return machine if limit.strip() == "max" else min(machine, max(0, int(limit) - int(used)))


def memory_here() -> int:
    """Return `memory_available` of this machine, now."""
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    meminfo = Path("/proc/meminfo").read_text()
    if limit.exists() and used.exists():
        return memory_available(meminfo, limit.read_text(), used.read_text())
    return memory_available(meminfo)
