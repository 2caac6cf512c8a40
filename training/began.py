"""began.json: what the supervisor notes when it begins a job, for the proof that nothing of it is left.

{"at": seconds since the epoch, "leader": who leads the process group of the job's command, "gpus": as nvml.Gpus.memory
gives them just before, "gpu_problem": why they could not be asked}
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .nvml import Gpus
from .patient import Patient
from .processes import Identity
from .spec.folder import JobFolder

GPU_SECONDS = 5.0  # a driver that hangs must not keep a job from its start, nor its end from being told

Memory = tuple[list[dict[str, Any]], str]


def write(folder: JobFolder, leader: int, before: Memory) -> None:
    """Write it; a disk that refuses costs the proof its comparison, not the job its start."""
    identity, (gpus, problem) = Identity.of(leader), before
    body = {"at": time.time(), "leader": asdict(identity) if identity else None, "gpus": gpus, "gpu_problem": problem}
    with suppress(OSError):
        Path(folder.began).write_text(json.dumps(body) + "\n", "utf-8")


def read(folder: JobFolder) -> dict[str, Any]:
    """Return what it says; {} where there is none, or only a part of it."""
    try:
        body = json.loads(Path(folder.began).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def leader(folder: JobFolder) -> Identity | None:
    """Return who leads, or led, the group that the job's command was begun in."""
    found = read(folder).get("leader")
    return Identity(**found) if found else None


def gpu_memory() -> Memory:
    """Return the memory of each GPU now and why it isn't known; waits no longer than GPU_SECONDS."""

    def ask() -> Memory:
        gpus = Gpus()
        return gpus.memory(), gpus.problem

    return Patient(ask).get(GPU_SECONDS) or ([], "the driver gave no answer")
