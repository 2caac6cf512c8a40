"""Say whether this node can train: python -m training preflight --scratch DIR [--model DIR]

Prints one JSON object: what is here, and `problems`, each with the field, the reason and the way out; with a model's
folder also how many parameters it holds (`model_parameters`, null where its files don't tell) and in which layers
(`model_shape`). Runs with the standard library alone, on any Python from 3.8 on, so that a bare node gets an answer
and not a traceback.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib import metadata, util
from pathlib import Path
from typing import Any

from .interfaces import interfaces
from .memory import memory
from .modelfacts import parameters, shapes

PYTHON = (3, 11)
# name in the answer: distribution. The needed ones are a problem when missing; the others are a choice.
NEEDED = {
    "torch": "torch",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "trl": "trl",
    "datasets": "datasets",
    "safetensors": "safetensors",
    "pydantic": "pydantic",
    "psutil": "psutil",
    "yaml": "PyYAML",
}
OPTIONAL = {"peft": "peft", "flash_attn": "flash-attn", "bitsandbytes": "bitsandbytes", "pynvml": "nvidia-ml-py"}
REQUIREMENTS = Path(__file__).resolve().with_name("requirements.txt")
FREE_BYTES = 1 << 30  # less than this and not even the smallest job has room
GPU_FIELDS = ("index", "name", "memory.total", "memory.used", "driver_version")
MIB = 1 << 20


def main(argv: list[str]) -> int:
    """Print the answer; 0 even with problems: they are the answer."""
    parser = argparse.ArgumentParser(prog="python -m training preflight", description="Can this node train?")
    parser.add_argument("--scratch", type=Path, required=True, help="the node's scratch folder; made where missing")
    parser.add_argument("--model", type=Path, help="folder of the model that is to be trained")
    args = parser.parse_args(argv)
    answer = preflight(args.scratch)
    if args.model:
        answer["model_parameters"] = parameters(args.model)
        answer["model_shape"] = shapes(args.model)
    print(json.dumps(answer))
    return 0


def preflight(scratch: Path) -> dict[str, Any]:
    """Return everything known about this node. Sizes in bytes, `clock` in seconds since the epoch."""
    problems: list[dict[str, str]] = []
    ram = memory()
    return {
        "hostname": socket.gethostname(),
        "clock": time.time(),
        **_python(problems),
        "gpus": _gpus(problems),
        "cores": len(os.sched_getaffinity(0)),
        "ram_total": ram.total,
        "ram_available": ram.available,
        **_scratch(scratch, problems),
        "interfaces": interfaces(),
        "problems": problems,
    }


def _problem(problems: list[dict[str, str]], field: str, reason: str, fix: str) -> None:
    problems.append({"field": field, "reason": reason, "fix": fix})


def _python(problems: list[dict[str, str]]) -> dict[str, Any]:
    if sys.version_info < PYTHON:
        reason = "this interpreter is {}.{}, training needs {}.{}".format(*sys.version_info[:2], *PYTHON)
        _problem(problems, "python", reason, "Give the node the absolute path of a newer one.")
    versions = {name: _version(distribution) for name, distribution in {**NEEDED, **OPTIONAL}.items()}
    missing = [distribution for name, distribution in NEEDED.items() if versions[name] is None]
    if missing:
        fix = f"{sys.executable} -m pip install -r {REQUIREMENTS}"
        _problem(problems, "versions", f"missing: {', '.join(missing)}", fix)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "versions": versions,
        **_cuda(),
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _cuda() -> dict[str, str | None]:
    """Return the CUDA that torch was built for (None: a CPU build) and the NCCL beside it, without importing torch."""
    spec = util.find_spec("torch")
    cuda = None
    if spec and spec.origin:
        version = Path(spec.origin).with_name("version.py")
        text = version.read_text("utf-8") if version.is_file() else ""
        found = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
        cuda = found[1] if found else None
    nccl = next(filter(None, map(_version, ("nvidia-nccl-cu13", "nvidia-nccl-cu12"))), None)
    return {"cuda": cuda, "nccl": nccl}


def _gpus(problems: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Ask nvidia-smi; a node without it has no NVIDIA GPUs, which is no problem."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        gpus = [_gpu(row) for row in csv.reader(io.StringIO(done.stdout), skipinitialspace=True) if row]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        _problem(
            problems, "gpus", f"nvidia-smi does not answer: {error}", "Run nvidia-smi on the node; see its driver."
        )
        return []
    if gpus and _version("torch") and not _cuda()["cuda"]:
        fix = f"{sys.executable} -m pip install --force-reinstall -r {REQUIREMENTS}"
        _problem(problems, "cuda", "there are GPUs, and torch is a build without CUDA", fix)
    return gpus


def _gpu(row: list[str]) -> dict[str, Any]:
    index, name, total, used, driver = row
    memory = {"memory_total": int(total) * MIB, "memory_used": int(used) * MIB}
    return {"index": int(index), "name": name, **memory, "driver": driver}


def _scratch(scratch: Path, problems: list[dict[str, str]]) -> dict[str, Any]:
    answer: dict[str, Any] = {"scratch_writable": False, "disk_free": None, "disk_total": None}
    try:
        if not scratch.is_absolute():
            raise ValueError("it is not an absolute path")
        scratch.mkdir(parents=True, exist_ok=True)
        disk = shutil.disk_usage(scratch)
        answer.update(disk_free=disk.free, disk_total=disk.total)
        with tempfile.NamedTemporaryFile(dir=scratch, prefix=".preflight-") as file:
            file.write(b"x")
        answer["scratch_writable"] = True
    except (OSError, ValueError) as error:
        _problem(problems, "scratch", f"{scratch} can't be written: {error}", "Name a folder this user may write.")
        return answer
    if disk.free < FREE_BYTES:
        _problem(problems, "disk_free", f"{disk.free // MIB} MiB are left on {scratch}", "Free some space there.")
    return answer
