"""One look at a node: memory, disk, processor, links, the ranks' memory, the GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import psutil

from .memory import memory
from .nvml import Gpus
from .patient import Patient
from .processes import descendants, environment
from .rates import Rates

GIB = 1 << 30
FIRST_CPU_SECONDS = 0.1
PATIENCE = 2.0  # seconds for a disk or a driver to answer; the other figures don't wait longer for them


class Sampler:
    """Takes samples of this node for one job and remembers the most memory seen.

    `problems`: by part, why it could not be looked at; each stays with its first reason.
    """

    def __init__(self, disk: str, root: int, interface: str = ""):
        """`disk`: a folder on the file system to watch. `root`: the job's own process. `interface`: the ranks' link."""
        self.disk, self.root = disk, root
        self.peak_ranks: dict[int, int] = {}
        self.peak_ram = 0
        self.ram_total = 0
        self.problems: dict[str, str] = {}
        self._rank_of: dict[int, int | None] = {}
        self._looked = False
        self._rates = Rates(disk, interface)
        self._gpus: Gpus | None = None
        slow = {"rates": self._rates.take, "disk": self._disk, "gpus": self._take_gpus}
        self._slow = {name: Patient(ask) for name, ask in slow.items()}

    def take(self) -> dict[str, Any]:
        """Return the figures of now, as spec.events says of SAMPLE. Never raises: a part that fails is left out."""
        figures: dict[str, Any] = {}
        parts: dict[str, Callable[[], dict[str, Any]]] = {"memory": self._memory, "cpu": self._cpu}
        parts |= {"ranks": self._ranks} | {name: partial(self._patiently, name) for name in self._slow}
        for name, part in parts.items():
            try:
                figures |= part()
            except Exception as error:  # noqa: BLE001  of whatever kind: the next second has another look
                self.problems.setdefault(name, f"{type(error).__name__}: {error}")
        return figures

    def peaks(self) -> str:
        """Return a sentence about the most memory seen; "" before the first sample."""
        if not self.ram_total:
            return ""
        ranks = ", ".join(f"rank {n} {peak / GIB:.2f}" for n, peak in sorted(self.peak_ranks.items()))
        host = f"the host's memory peaked at {self.peak_ram / GIB:.1f} of {self.ram_total / GIB:.1f} GiB"
        return f"{host} ({ranks} GiB)" if ranks else host

    def _patiently(self, name: str) -> dict[str, Any]:
        found = self._slow[name].get(PATIENCE)
        if found is None:
            self.problems.setdefault(name, "no answer")
        return found or {}

    def _memory(self) -> dict[str, Any]:
        total, available = memory()
        used = total - available
        self.ram_total, self.peak_ram = total, max(self.peak_ram, used)
        return {"ram_used": used, "ram_total": total}

    def _cpu(self) -> dict[str, Any]:
        # the very first look has nothing to compare with: give it a moment
        first, self._looked = not self._looked, True
        share = psutil.cpu_percent(FIRST_CPU_SECONDS if first else None) / 100
        return {"cpu": round(share, 4), "load": os.getloadavg()[0]}

    def _disk(self) -> dict[str, Any]:
        try:
            disk = psutil.disk_usage(self.disk)
        except OSError:
            return {"disk_used": None, "disk_free": None, "disk_total": None}
        return {"disk_used": disk.used, "disk_free": disk.free, "disk_total": disk.total}

    def _take_gpus(self) -> dict[str, Any]:
        self._gpus = self._gpus or Gpus()
        return {"gpus": self._gpus.take()}

    def _ranks(self) -> dict[str, Any]:
        """Return the resident memory of every rank below the job's process, lowest rank first."""
        sizes: dict[int, int] = {}
        for process in descendants(self.root):
            rank = self._rank(process.pid)
            # a rank's helpers (data loaders) carry its number too; the rank itself comes first and is the eldest
            if rank is not None and rank not in sizes and (rss := _rss(process.pid)):
                sizes[rank] = rss
                self.peak_ranks[rank] = max(self.peak_ranks.get(rank, 0), rss)
        return {"ranks": [{"rank": rank, "rss": sizes[rank]} for rank in sorted(sizes)]}

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
