"""What a host's disk and links carried since the last look, in bytes a second, from the kernel's own counters (Linux).

A counter that isn't there gives None: a disk behind a network or an overlay has no block device, most hosts no RDMA.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

SYS, PROC = Path("/sys"), Path("/proc")
SECTOR = 512  # bytes, in the kernel's counters, whatever the disk's own are
WORD = 4  # bytes in which InfiniBand counts
CHOSEN = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")

Counts = dict[str, int | None]


def counts(device: Path, interface: str) -> Counts:
    """Return bytes since the host's start: of a block device, of one interface, of all RDMA ports together."""
    return _disk(device) | _network(interface) | _rdma()


def device_of(folder: str) -> Path:
    """Return where the kernel counts for the block device that a folder lies on."""
    device = os.stat(folder).st_dev
    return SYS / f"dev/block/{os.major(device)}:{os.minor(device)}"


class Rates:
    """Turns counts into rates."""

    def __init__(self, disk: str, interface: str):
        self._disk, self._interface = disk, interface
        self._device: Path | None = None
        self._before: Counts = {}
        self._at = 0.0

    def take(self) -> dict[str, float | None]:
        """Return disk_read, disk_write, net_received, net_sent, rdma_received, rdma_sent since the last call."""
        self._device = self._device or device_of(self._disk)  # asked once: a disk that dies later hangs nobody
        now, found = time.monotonic(), counts(self._device, self._interface)
        rates = {name: rate(self._before.get(name), count, now - self._at) for name, count in found.items()}
        self._before, self._at = found, now
        return rates


def rate(before: int | None, now: int | None, seconds: float) -> float | None:
    """Return the difference a second; None where a count is missing or has begun anew."""
    if before is None or now is None or now < before or seconds <= 0:
        return None
    return round((now - before) / seconds, 1)


def chosen_interface(environment: Mapping[str, str]) -> str:
    """Return the interface that the ranks are told to use, else that of the default route; "" where there is none."""
    for name in CHOSEN:
        if named := environment.get(name, "").lstrip("=").split(",")[0].split(":")[0]:
            return named
    return default_interface()


def default_interface() -> str:
    try:
        lines = (PROC / "net/route").read_text("ascii").splitlines()[1:]
    except OSError:
        return ""
    routes = [fields for line in lines if len(fields := line.split()) > 7 and fields[1] == fields[7] == "00000000"]
    return min(routes, key=lambda fields: int(fields[6]))[0] if routes else ""


def _disk(device: Path) -> Counts:
    try:
        fields = (device / "stat").read_text("ascii").split()
        return {"disk_read": int(fields[2]) * SECTOR, "disk_write": int(fields[6]) * SECTOR}
    except (OSError, ValueError, IndexError):
        return {"disk_read": None, "disk_write": None}


def _network(interface: str) -> Counts:
    folder = SYS / "class/net" / interface / "statistics"
    named = interface not in ("", ".", "..") and "/" not in interface
    names = {"net_received": "rx_bytes", "net_sent": "tx_bytes"}
    return {key: _number(folder / name) if named else None for key, name in names.items()}


def _rdma() -> Counts:
    """InfiniBand and RoCE count in words of 4 bytes, EFA in bytes and in another folder."""
    ports = sorted((SYS / "class/infiniband").glob("*/ports/*"))
    received = [_port(port, "port_rcv_data", "rx_bytes") for port in ports]
    sent = [_port(port, "port_xmit_data", "tx_bytes") for port in ports]
    return {"rdma_received": _sum(received), "rdma_sent": _sum(sent)}


def _port(port: Path, words: str, octets: str) -> int | None:
    if (count := _number(port / "counters" / words)) is not None:
        return count * WORD
    return _number(port / "hw_counters" / octets)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
