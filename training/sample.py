"""One look at a node: memory, disk, processor, the ranks' memory, the GPUs."""

from __future__ import annotations

import os
from typing import Any

import psutil

from .memory import memory
from .nvml import Gpus
from .processes import descendants, environment

GIB = 1 << 30
FIRST_CPU_SECONDS = 0.1


class Sampler:
    """Takes samples of this node for one job and remembers the most memory seen."""

    def __init__(self, disk: str, root: int):
        """`disk`: a folder on the file system to watch. `root`: the job's own process."""
        self.disk, self.root = disk, root
        self.peak_ranks: dict[int, int] = {}
        self.peak_ram = 0
        self.ram_total = 0
        self._rank_of: dict[int, int | None] = {}
        self._looked = False
        self._gpus = Gpus()

    def take(self) -> dict[str, Any]:
        """Return the figures of now: bytes, cpu as a share 0..1 since the last sample, load of the last minute."""
        total, available = memory()
        used = total - available
        self.ram_total, self.peak_ram = total, max(self.peak_ram, used)
        return {
            "ram_used": used,
            "ram_total": total,
            **self._disk(),
            "cpu": round(self._cpu(), 4),
            "load": os.getloadavg()[0],
            "ranks": self._ranks(),
            "gpus": self._gpus.take(),
        }

    def peaks(self) -> str:
        """Return a sentence about the most memory seen; "" before the first sample."""
        if not self.ram_total:
            return ""
        ranks = ", ".join(f"rank {n} {peak / GIB:.2f}" for n, peak in sorted(self.peak_ranks.items()))
        host = f"the host's memory peaked at {self.peak_ram / GIB:.1f} of {self.ram_total / GIB:.1f} GiB"
        return f"{host} ({ranks} GiB)" if ranks else host

    def _cpu(self) -> float:
        # the very first look has nothing to compare with: give it a moment
        first, self._looked = not self._looked, True
        return psutil.cpu_percent(FIRST_CPU_SECONDS if first else None) / 100

    def _disk(self) -> dict[str, int | None]:
        try:
            disk = psutil.disk_usage(self.disk)
        except OSError:
            return {"disk_free": None, "disk_total": None}
        return {"disk_free": disk.free, "disk_total": disk.total}

    def _ranks(self) -> list[dict[str, int]]:
        """Return the resident memory of every rank below the job's process, lowest rank first."""
        sizes: dict[int, int] = {}
        for process in descendants(self.root):
            rank = self._rank(process.pid)
            # a rank's helpers (data loaders) carry its number too; the rank itself comes first and is the eldest
            if rank is not None and rank not in sizes and (rss := _rss(process.pid)):
                sizes[rank] = rss
                self.peak_ranks[rank] = max(self.peak_ranks.get(rank, 0), rss)
        return [{"rank": rank, "rss": sizes[rank]} for rank in sorted(sizes)]

    def _rank(self, pid: int) -> int | None:
        if self._rank_of.get(pid) is None:
            value = environment(pid).get(b"RANK", b"")
            self._rank_of[pid] = int(value) if value.isdigit() else None
        return self._rank_of[pid]


def _rss(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
