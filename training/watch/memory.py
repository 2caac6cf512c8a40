"""How much memory this rank holds: on its GPU by torch's own count, in the host by the kernel's."""

from __future__ import annotations

from pathlib import Path

import torch

STATUS = Path("/proc/self/status")
GPU = ("memory_allocated", "memory_reserved", "memory_peak")
HOST = ("host_memory", "host_memory_peak")


def held(*, gpu: bool, status: Path = STATUS) -> dict[str, float]:
    """Return bytes: resident now and at most, and with `gpu` allocated, reserved and the most ever allocated there."""
    lines = (line.split() for line in status.read_text("ascii", "replace").splitlines())
    kib = {words[0]: float(words[1]) for words in lines if words and words[0] in ("VmRSS:", "VmHWM:")}
    host = dict(zip(HOST, (kib["VmRSS:"] * 1024, kib["VmHWM:"] * 1024), strict=True))
    return host | _on_gpu() if gpu else host


def _on_gpu() -> dict[str, float]:
    stats = torch.cuda.memory_stats()  # asked once: each of torch's three questions would gather all of it anew
    keys = ("allocated_bytes.all.current", "reserved_bytes.all.current", "allocated_bytes.all.peak")
    return dict(zip(GPU, (float(stats.get(key, 0)) for key in keys), strict=True))
