"""The GPUs of this host and who uses them, by nvidia-smi (which asks NVML), and what connects them. Standard library.

A host without nvidia-smi has no NVIDIA GPUs, which is no problem. Memory in bytes.
"""

from __future__ import annotations

import csv
import io
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

GPU_FIELDS = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version")
PROCESS_FIELDS = ("gpu_uuid", "pid", "used_memory")
MIB = 1 << 20
SECONDS = 20  # a driver that hangs is a finding, too
SERVICE = "nvidia-fabricmanager"
SWITCH = Path("/dev/nvidia-nvswitchctl")
FABRICS = Path("/sys/class/infiniband")
SHOWN = 200  # characters of a command line


class NoAnswer(Exception):
    """nvidia-smi is here and does not answer."""


def gpus() -> list[dict[str, Any]]:
    """Return [{index, uuid, name, memory_total, memory_used, driver}]; raise NoAnswer."""
    return [_gpu(row) for row in _asked("gpu", GPU_FIELDS)]


def processes(uuids: dict[str, int]) -> list[dict[str, Any]]:
    """Return [{gpu, pid, user, command, memory}] of what computes on GPUs. `uuids`: uuid -> index. Raises NoAnswer.

    In a container the processes of others may be nobody's that it sees: user and command are empty then.
    """
    found = []
    for uuid, pid, used in _asked("compute-apps", PROCESS_FIELDS):
        memory = int(used) * MIB if used.isdigit() else None
        found.append({"gpu": uuids.get(uuid), "pid": int(pid), **_who(int(pid)), "memory": memory})
    return found


def fabric() -> str | None:
    """Return the state of the service that NVSwitch needs, as systemd says it; None on a host without NVSwitch."""
    if not SWITCH.exists():
        return None
    done = _run("systemctl", "is-active", SERVICE)
    return (done.stdout.strip() or done.stderr.strip() or "unknown") if done else "unknown"


def nvlink() -> dict[str, int] | None:
    """Return how many links are active and inactive, over all GPUs; None where there is no answer."""
    done = _run("nvidia-smi", "nvlink", "--status")
    if done is None or done.returncode:
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("Link ")]
    inactive = sum("inactive" in line for line in lines)
    return {"active": len(lines) - inactive, "inactive": inactive}


def fabrics() -> dict[str, list[str]]:
    """Return the network devices for RDMA by driver, such as {"efa": ["rdmap16s27"]}: Linux, sysfs."""
    found: dict[str, list[str]] = {}
    for device in sorted(FABRICS.iterdir()) if FABRICS.is_dir() else ():
        driver = device / "device" / "driver"
        found.setdefault(driver.resolve().name if driver.exists() else "unknown", []).append(device.name)
    return found


def _asked(what: str, fields: tuple[str, ...]) -> list[list[str]]:
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", f"--query-{what}=" + ",".join(fields), "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
        rows = [row for row in csv.reader(io.StringIO(done.stdout), skipinitialspace=True) if row]
    except (OSError, subprocess.SubprocessError) as error:
        raise NoAnswer(str(error)) from error
    if any(len(row) != len(fields) for row in rows):
        raise NoAnswer(f"it says {done.stdout[:SHOWN]!r}")
    return rows


def _gpu(row: list[str]) -> dict[str, Any]:
    index, uuid, name, total, used, driver = row
    try:
        memory = {"memory_total": int(total) * MIB, "memory_used": int(used) * MIB}
        return {"index": int(index), "uuid": uuid, "name": name, **memory, "driver": driver}
    except ValueError as error:
        raise NoAnswer(f"it says {row}") from error


def _who(pid: int) -> dict[str, str]:
    folder = Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        uid = os.stat(folder).st_uid
    except OSError:
        return {"user": "", "command": ""}
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return {"user": user, "command": " ".join(words).strip()[:SHOWN]}


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
