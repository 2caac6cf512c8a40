"""Say how a job stands: python -m training status FOLDER

Prints {"state": "absent" | "ready" | "running" | "ended" | "lost", "exit": {...} | null, "processes": [pids]}.
lost: it was started, its supervisor is gone, and nothing says how it ended; with "rebooted": true where the node
was started anew since.
Where no supervisor is at work any more also {"gpus": [{index, before, now (bytes), others}], "gpu_problem": text}:
each GPU's memory before the job and now, and how many processes that are not the job's compute there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from . import began
from .belonging import of_job
from .exitfile import ExitFile
from .pidfile import PidFile
from .processes import PROC, Identity, boot_id
from .spec.folder import JobFolder


def main(argv: list[str]) -> int:
    """Print the status as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m training status", description="Say how a job stands.")
    parser.add_argument("folder", type=Path)
    print(json.dumps(status(JobFolder(parser.parse_args(argv).folder.resolve()))))
    return 0


def status(folder: JobFolder) -> dict[str, Any]:
    """Return the state, the exit file's content, the job's living processes without the supervisor, and the GPUs."""
    pids = [process.pid for process in of_job(Path(folder.path))]
    found = {"state": state(folder), "exit": ExitFile(folder).read(), "processes": pids}
    if found["state"] == "running":
        return found
    return (
        found | _gpus(folder, set(pids)) | ({"rebooted": True} if found["state"] == "lost" and rebooted(folder) else {})
    )


def rebooted(folder: JobFolder) -> bool:
    """Tell whether the node was started anew since the job's supervisor was."""
    supervisor = PidFile(folder).read()
    return supervisor is not None and supervisor.boot != boot_id()


def _gpus(folder: JobFolder, pids: set[int]) -> dict[str, Any]:
    before = {gpu["index"]: gpu["used"] for gpu in began.read(folder).get("gpus", [])}
    now, problem = began.gpu_memory()
    gpus = [
        {
            "index": gpu["index"],
            "before": before.get(gpu["index"]),
            "now": gpu["used"],
            "others": sum(pid not in pids and not _is_ending(pid) for pid in gpu["pids"] or ()),
        }
        for gpu in now
    ]
    return {"gpus": gpus, "gpu_problem": problem}


def _is_ending(pid: int) -> bool:
    """One that nobody sees here lives outside our container; one that has just ended may have been the job's."""
    return (PROC / str(pid)).exists() and Identity.of(pid) is None


def state(folder: JobFolder) -> str:
    """Return one word. The exit file is asked before and after: a job may end between two looks."""
    pid_file = PidFile(folder)
    if ExitFile(folder).read():
        return "ended"
    if pid_file.supervisor():
        return "running"
    if pid_file.read():
        return "ended" if ExitFile(folder).read() else "lost"
    return "ready" if Path(folder.job).is_file() else "absent"
