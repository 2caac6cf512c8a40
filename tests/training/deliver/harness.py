"""Exports to deliver, and deliveries as processes of their own, as nodes start them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from training.deliver.cli import run
from training.journal import tail
from training.spec.deliver import DeliverJob
from training.spec.deliver.folder import SUMS

ROOT = Path(__file__).parents[3]
SIZES = {
    "config.json": 400,
    "model-00001-of-00002.safetensors": (5 << 20) + 4321,
    "model-00002-of-00002.safetensors": 300_000,
}
LIMIT = 60.0


def make_export(folder: Path, sizes: Mapping[str, int] = SIZES, seed: int = 0) -> Path:
    """Write files of these sizes and the proof that names them, as an export ends with."""
    folder.mkdir(parents=True)
    chance = random.Random(seed)
    for name, size in sizes.items():
        (folder / name).write_bytes(chance.randbytes(size))
    files = [{"name": n, "size": s, "sha256": sha256(folder / n)} for n, s in sizes.items()]
    (folder / "proof.json").write_text(json.dumps({"checkpoint": "checkpoint-7", "step": 7, "files": files}))
    return folder


def flip(path: Path, offset: int = -1) -> None:
    """Turn one bit of a file over, keeping its size."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def describe(tmp: Path, source: Path, target: Mapping[str, Any], *, replace: bool = False) -> DeliverJob:
    return DeliverJob.model_validate(
        {"source": str(source), "target": target, "replace": replace, "events": str(tmp / "events.jsonl")}
    )


def deliver(tmp: Path, source: Path, target: Mapping[str, Any], *, replace: bool = False) -> tuple[int, dict[str, Any]]:
    """Deliver in this process; return the exit status and what its last events say: `delivered`, or `finished`."""
    code = run(describe(tmp, source, target, replace=replace))
    *_, before, last = [{}, *(e.data | {"kind": e.kind} for e in events(tmp))]
    return code, (before if code == 0 else last)


def events(tmp: Path) -> list[Any]:
    return tail(tmp / "events.jsonl")


def text_of(tmp: Path) -> str:
    """Return all that the delivery said, for a look at what must not be in it."""
    return (tmp / "events.jsonl").read_text("utf-8")


def start(tmp: Path, job: DeliverJob, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the delivery as a process of its own."""
    path = tmp / "job.json"
    path.write_text(job.model_dump_json())
    with (tmp / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "training", "deliver", str(path)],
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdout=log,
            stderr=log,
        )


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


def sums_hold(folder: Path) -> bool:
    """Let the system's own sha256sum check every file of a folder."""
    return (
        subprocess.run(["sha256sum", "--check", "--quiet", "--strict", SUMS], cwd=folder, check=False).returncode == 0
    )
