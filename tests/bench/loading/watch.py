"""Start the ranks of one way of loading, weigh them until they are sharded, and end them before the host is full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.training.launch import ROOT
from training.spec.ports import free_port

EVERY = 0.05  # seconds between two looks
RESERVE = 2 << 30  # bytes: with less free on the host the ranks are ended
LIMIT = 600.0  # seconds for a start or a load; most take a few


@dataclass
class Weighed:
    """One way's figures, in bytes and seconds. `cut`: ended by us, so that memory and time are lower bounds."""

    name: str
    alone: list[int]
    peaks: list[int]
    together: int = 0
    seconds: float = 0.0
    cut: bool = False
    done: list[dict[str, Any]] = field(default_factory=list)


def weigh(name: str, model: Path, folder: Path, ranks: int, *, way: str, ram_efficient: bool) -> Weighed:
    """Load `model` on `ranks` ranks by `way` and return what was seen."""
    folder.mkdir()
    processes = [_start(model, folder, way, rank, ranks, port, ram_efficient) for port in [free_port("127.0.0.1")]
                 for rank in range(ranks)]  # fmt: skip
    try:
        ready = _facts(processes, folder, ranks, "ready")
        seen = Weighed(name, [one["alone"] for one in ready], [0] * ranks)
        (folder / "go").touch()
        _watch(processes, folder, seen)
        return seen
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(
    model: Path, folder: Path, way: str, rank: int, ranks: int, port: int, ram_efficient: bool
) -> subprocess.Popen[bytes]:
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": str(ram_efficient).lower(),
    }
    command = [sys.executable, "-m", "tests.bench.loading.rank", str(model), str(folder), way]
    with (folder / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def _facts(processes: list[subprocess.Popen[bytes]], folder: Path, ranks: int, name: str) -> list[dict[str, Any]]:
    limit = time.monotonic() + LIMIT
    while not all((folder / f"{rank}.{name}").exists() for rank in range(ranks)):
        _check_alive(processes, folder, limit)
        time.sleep(EVERY)
    return [json.loads((folder / f"{rank}.{name}").read_text()) for rank in range(ranks)]


def _check_alive(processes: list[subprocess.Popen[bytes]], folder: Path, limit: float) -> None:
    for rank, process in enumerate(processes):
        if process.poll() is not None:
            raise RuntimeError(f"rank {rank} ended early:\n{(folder / f'{rank}.log').read_text()[-3000:]}")
    if time.monotonic() > limit:
        raise RuntimeError(f"no answer within {LIMIT:.0f} s; see {folder}")


def _watch(processes: list[subprocess.Popen[bytes]], folder: Path, seen: Weighed) -> None:
    begun, ranks = time.monotonic(), len(processes)
    looks = [psutil.Process(process.pid) for process in processes]
    while not all((folder / f"{rank}.done").exists() for rank in range(ranks)):
        _check_alive(processes, folder, begun + LIMIT)
        _look(looks, seen)
        if psutil.virtual_memory().available < RESERVE:
            seen.cut, seen.seconds = True, time.monotonic() - begun
            return
        time.sleep(EVERY)
    _look(looks, seen)
    seen.done = _facts(processes, folder, ranks, "done")
    seen.seconds = max(one["seconds"] for one in seen.done)
    (folder / "leave").touch()
    for process in processes:
        process.wait(LIMIT)


def _look(looks: list[psutil.Process], seen: Weighed) -> None:
    now = [process.memory_full_info().uss for process in looks]
    seen.peaks = [max(pair) for pair in zip(seen.peaks, now, strict=True)]
    seen.together = max(seen.together, sum(now))
