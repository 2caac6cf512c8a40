"""Start the proof in a fresh process and judge its result."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..memory import memory
from ..spec.events import strict
from ..spec.faults import Reason
from ..spec.job import ExportJob
from ..stop import heed
from .outcome import Failure

NAME = "proof.json"
HEADROOM = 1 << 30  # imports, activations, and the largest piece of the checkpoint
STOP_SECONDS = 0.5  # between two looks for a request to stop
PACKAGES = ("torch", "transformers", "safetensors", "tokenizers")
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def prove(job: ExportJob, folder: Path, weight_bytes: int) -> dict[str, Any]:
    """Return the proof of the model in `folder`; raise Failure naming the first check that it did not pass.

    A model that doesn't fit into memory is not loaded; the proof then says so in `not_compared`.
    """
    request = {
        "job": job.model_dump(mode="json"),
        "folder": str(folder),
        "bytes": weight_bytes,
        "memory": max(0, memory().available - HEADROOM),
    }
    result = _run(request, Path(job.events))
    failed = [check for check in result["checks"] if not check["passed"]]
    if failed:
        raise Failure(Reason.PROOF, f"{failed[0]['name']}: {failed[0]['detail']}")
    return {**strict(result), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of what wrote and read the model."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def _run(request: dict[str, Any], events: Path) -> dict[str, Any]:
    """Run training.export.prove; its own output goes to this job's log."""
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    with tempfile.TemporaryDirectory(prefix="export-proof-") as scratch:
        asked, told = Path(scratch) / "request.json", Path(scratch) / "result.json"
        asked.write_text(json.dumps(request), "utf-8")
        command = [sys.executable, "-m", "training.export.prove", str(asked), str(told)]
        status = _wait(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL), events)
        if -status in STOPS:  # the node is going down, and asks every process of ours by itself
            raise SystemExit(f"the proof was ended by signal {-status}")
        if status == -9:
            raise Failure(Reason.KILLED_BY_HOST, "the proof was killed by the host, probably out of memory")
        if status:
            raise Failure(Reason.PROOF, f"load: the fresh process ended with status {status}; its log says why")
        result: dict[str, Any] = json.loads(told.read_text("utf-8"))
        return result


def _wait(process: subprocess.Popen[bytes], events: Path) -> int:
    """Return the exit status; the process ends with us where we are told to stop."""
    try:
        while True:
            try:
                return process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                heed(events)
    finally:
        process.kill()
        process.wait()
