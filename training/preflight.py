"""Say whether this node can train: python -m training preflight --scratch DIR [--model DIR] [--address A --peer B ...]

Prints one JSON object: what is here, and `problems`, each with the field, the reason and the way out; with a model's
folder also whether it is there, how many parameters it holds (`model_parameters`, null where its files don't tell) and
in which layers (`model_shape`). Of nodes that are to train together: `port`, free on this node's address, and
`routes`, how the peers are reached. With `--token NAME` it leaves an empty file of that name, which shows the other
nodes whether they see the same disk. Runs with the standard library alone, on any Python from 3.8 on, so that a bare
node gets an answer and not a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from importlib import util
from pathlib import Path, PurePosixPath
from typing import Any

from . import gpus, installed
from .interfaces import interfaces
from .memory import memory
from .modelfacts import parameters, shapes
from .routes import routes
from .spec.folder import Scratch
from .spec.ports import free_port

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
NCCL = ("nvidia-nccl-cu13", "nvidia-nccl-cu12")
REQUIREMENTS = Path(__file__).resolve().with_name("requirements.txt")
FREE_BYTES = 1 << 30  # less than this and not even the smallest job has room
MIB = 1 << 20
BOOT = Path("/proc/sys/kernel/random/boot_id")
OLD_SECONDS = 3600.0  # a token of a look that was broken off


def main(argv: list[str]) -> int:
    """Print the answer; 0 even with problems: they are the answer."""
    parser = argparse.ArgumentParser(prog="python -m training preflight", description="Can this node train?")
    parser.add_argument("--scratch", type=Path, required=True, help="the node's scratch folder; made where missing")
    parser.add_argument("--model", type=Path, help="folder of the model that is to be trained")
    parser.add_argument("--address", default="", help="this node's address, as its peers reach it")
    parser.add_argument("--peer", action="append", default=[], help="another node's address; may be said again")
    parser.add_argument("--token", default="", help="leave an empty file of this name for the others to see")
    args = parser.parse_args(argv)
    answer = preflight(args.scratch)
    if args.model:
        answer["model_there"] = args.model.exists()
        answer["model_parameters"] = parameters(args.model)
        answer["model_shape"] = shapes(args.model)
    if args.address:
        answer.update(_network(args.address, args.peer, answer))
    if args.token and answer["scratch_writable"]:
        _leave(Path(Scratch(PurePosixPath(args.scratch)).sightings), args.token, answer["problems"])
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
        **_gpus(problems),
        "boot": BOOT.read_text("ascii").strip() if BOOT.exists() else "",
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
    wanted = {**NEEDED, **OPTIONAL}
    known = installed.versions([*wanted.values(), *NCCL])
    versions = {name: known[distribution] for name, distribution in wanted.items()}
    missing = [distribution for name, distribution in NEEDED.items() if versions[name] is None]
    if missing:
        fix = f"{sys.executable} -m pip install -r {REQUIREMENTS}"
        _problem(problems, "versions", f"missing: {', '.join(missing)}", fix)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "versions": versions,
        "cuda": _cuda(),
        "nccl": next(filter(None, map(known.get, NCCL)), None),
    }


def _cuda() -> str | None:
    """Return the CUDA that torch was built for (None: a CPU build, or no torch), without importing it."""
    spec = util.find_spec("torch")
    cuda = None
    if spec and spec.origin:
        version = Path(spec.origin).with_name("version.py")
        text = version.read_text("utf-8") if version.is_file() else ""
        found = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
        cuda = found[1] if found else None
    return cuda


def _gpus(problems: list[dict[str, str]]) -> dict[str, Any]:
    """Return the GPUs, what computes on them, and what connects them; empty on a host without."""
    rdma = {"fabrics": gpus.fabrics()}
    try:
        found = gpus.gpus()
        used = gpus.processes({gpu["uuid"]: gpu["index"] for gpu in found}) if found else []
    except gpus.NoAnswer as error:
        fix = "Run nvidia-smi on the node; see its driver."
        _problem(problems, "gpus", f"nvidia-smi does not answer: {error}", fix)
        return {"gpus": [], "gpu_processes": [], **rdma}
    if not found:
        return {"gpus": [], "gpu_processes": [], **rdma}
    if util.find_spec("torch") and not _cuda():
        fix = f"{sys.executable} -m pip install --force-reinstall -r {REQUIREMENTS}"
        _problem(problems, "cuda", "there are GPUs, and torch is a build without CUDA", fix)
    return {"gpus": found, "gpu_processes": used, "fabric": gpus.fabric(), "nvlink": gpus.nvlink(), **rdma}


def _network(address: str, peers: list[str], answer: dict[str, Any]) -> dict[str, Any]:
    """Return a free port of ours and the ways to the peers."""
    try:
        port = free_port(address)
    except OSError as error:
        reason = f"{address!r} is not one of this host's ({error})"
        own = ", ".join(f"{found['address']} ({found['name']})" for found in answer["interfaces"])
        _problem(answer["problems"], "internal_address", reason, f"Give one of its own as internal address: {own}.")
        port = 0
    return {"port": port, "routes": routes(peers, answer["interfaces"])}


def _leave(folder: Path, token: str, problems: list[dict[str, str]]) -> None:
    """Leave our token where every node that shares the disk sees it; take away what broken-off looks left."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if time.time() - old.stat().st_mtime > OLD_SECONDS:
                old.unlink(missing_ok=True)
        (folder / Path(token).name).touch()
    except OSError as error:
        _problem(problems, "scratch", f"{folder} can't be written: {error}", "Name a folder this user may write.")


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
