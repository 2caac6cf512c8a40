"""One run of each way over a checkpoint on the disk: seconds and peak resident memory. What it wrote is removed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.saving.checkpoints import MANIFEST
from training.spec.events import Event, Kind, parse
from training.spec.folder import checkpoint_name
from training.spec.job import ExportJob

from .making import STEP, Size

MODEL = "pytorch_model_fsdp_0"
HIGHEST = re.compile(r"VmHWM:\s+(\d+) kB")
LOOK = 0.01


@dataclass(frozen=True)
class Ours:
    """Seconds from the start of the process, by phase; `seconds`: until all files were written, hashed and flushed."""

    seconds: float
    start: float
    check: float
    stream: float
    prove: float | None
    peak: int


@dataclass(frozen=True)
class Other:
    seconds: float
    peak: int


def export_job(folder: Path, **settings: Any) -> ExportJob:
    """Write down the export of what `making` left in `folder`, to run by `export_command`."""
    job = ExportJob(
        checkpoint=str(checkpoint(folder)),
        model=str(folder / "base"),
        out=str(folder / "out" / "model"),
        events=str(folder / "events.jsonl"),
        **settings,
    )
    (folder / "job.json").write_text(job.model_dump_json())
    return job


def export_command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "training", "export", str(folder / "job.json")]


def ours(folder: Path, size: Size, *, prove: bool, prefix: tuple[str, ...] = ()) -> Ours:
    """Run `python -m training export`. Without `prove` it is ended when its proof begins."""
    job = export_job(folder, dtype=size.dtype)
    Path(job.events).unlink(missing_ok=True)
    settle(folder)
    begun = time.time()
    process = subprocess.Popen([*prefix, *export_command(folder)], start_new_session=True)
    peak = 0
    while process.poll() is None and not _phase(job, "prove"):
        peak = max(peak, highest(process.pid))
        time.sleep(LOOK)
    if not prove:
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    told = events(job)
    shutil.rmtree(folder / "out")
    assert status == (0 if prove else -9), told[-1]
    return _measured(told, begun, peak, prove=prove)


def _measured(told: list[Event], begun: float, peak: int, *, prove: bool) -> Ours:
    first = {phase: _at(told, phase)[0] for phase in ("check", "stream", "prove")}
    stop = next((event.at for event in told if event.kind == Kind.EXPORTED), None)
    return Ours(
        seconds=first["prove"] - begun,
        start=first["check"] - begun,
        check=first["stream"] - first["check"],
        stream=first["prove"] - first["stream"],
        prove=stop - first["prove"] if prove and stop else None,
        peak=peak,
    )


def merged(folder: Path) -> Other:
    """Run `accelerate merge-weights`, and flush what it wrote."""
    out = folder / "merged"
    settle(folder)
    begun = time.perf_counter()
    module = "accelerate.commands.accelerate_cli"
    command = [sys.executable, "-m", module, "merge-weights", str(checkpoint(folder) / MODEL), str(out)]
    pid = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid
    _, status, used = os.wait4(pid, 0)
    assert status == 0, "merge-weights failed"
    _flush(out)
    seconds = time.perf_counter() - begun
    shutil.rmtree(out)
    return Other(seconds, used.ru_maxrss * 1024)


def copied(folder: Path) -> float:
    """Run cp over the shards, and flush the copies; return the seconds."""
    out = folder / "copy"
    settle(folder)
    begun = time.perf_counter()
    subprocess.run(["cp", "-r", str(checkpoint(folder) / MODEL), str(out)], check=True)
    _flush(out)
    seconds = time.perf_counter() - begun
    shutil.rmtree(out)
    return seconds


def checkpoint(folder: Path) -> Path:
    return folder / "checkpoints" / checkpoint_name(STEP)


def size_of(folder: Path) -> int:
    files = (p for p in checkpoint(folder).rglob("*") if p.is_file() and not MANIFEST.fullmatch(p.name))
    return sum(path.stat().st_size for path in files)


def settle(folder: Path) -> None:
    """Flush what went before, so that no way pays for another."""
    subprocess.run(["sync", "-f", str(folder)], check=True)


def events(job: ExportJob) -> list[Event]:
    path = Path(job.events)
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [parse(line) for line in lines if line.endswith(b"\n")]


def _phase(job: ExportJob, phase: str) -> bool:
    return bool(_at(events(job), phase))


def _at(told: list[Event], phase: str) -> list[float]:
    return [event.at for event in told if event.kind == Kind.PROGRESS and event.data["phase"] == phase]


def highest(pid: int) -> int:
    """Return the peak resident memory of a living process so far, in bytes."""
    try:
        found = HIGHEST.search(Path(f"/proc/{pid}/status").read_text("ascii"))
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _flush(folder: Path) -> None:
    subprocess.run(["sync", *map(str, folder.iterdir())], check=True)
