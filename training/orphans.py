"""Say what runs below a scratch folder: python -m training orphans SCRATCH

Prints {"jobs": [{"folder", "kind", "run", "number", "node_rank", "supervisor": pid or null, "processes": [pids],
"age_seconds"}]}: every job on this node whose supervisor lives, or that left processes behind, however it was started.
kind, run, number and node_rank are null where the folder has no name of ours. Which of them are orphans is for the
service to say, which knows what should run. Nothing is ended: see `signal FOLDER kill`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from .pidfile import PidFile
from .processes import PROC, Identity, marked, pids
from .spec.folder import JobFolder
from .spec.jobname import named


def main(argv: list[str]) -> int:
    """Print the jobs as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m training orphans", description="Say what runs below a scratch.")
    parser.add_argument("scratch", type=Path)
    print(json.dumps({"jobs": jobs(parser.parse_args(argv).scratch.resolve())}))
    return 0


def jobs(scratch: Path) -> list[dict[str, Any]]:
    """Return the jobs of this node that live below `scratch`, sorted by folder."""
    processes: dict[Path, list[Identity]] = defaultdict(list)
    for identity, folder in marked():
        processes[folder].append(identity)
    supervisors = dict(_supervisors())
    folders = sorted({*processes, *supervisors})
    below = [folder for folder in folders if folder.is_relative_to(scratch)]
    return [_told(scratch, folder, supervisors.get(folder), processes.get(folder, [])) for folder in below]


def _told(scratch: Path, folder: Path, supervisor: Identity | None, left: list[Identity]) -> dict[str, Any]:
    name = named(str(scratch), str(folder))
    oldest = min(identity.started for identity in [*left, *([supervisor] if supervisor else [])])
    return {
        "folder": str(folder),
        "kind": name.kind if name else None,
        "run": name.run if name else None,
        "number": name.number if name else None,
        "node_rank": name.node_rank if name else None,
        "supervisor": supervisor.pid if supervisor else None,
        "processes": sorted(identity.pid for identity in left),
        "age_seconds": round(_age(oldest), 1),
    }


def _supervisors() -> Iterator[tuple[Path, Identity]]:
    """Yield the folder and the process of each supervisor that lives on this node."""
    for pid in pids():
        folder = _supervised(pid)
        if folder and (found := PidFile(JobFolder(PurePosixPath(folder))).supervisor()) and found.pid == pid:
            yield folder, found


def _supervised(pid: int) -> Path | None:
    """Return the folder that a process supervises by its command line; None where it is something else."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    if b"supervise" not in words[:-1]:
        return None
    return Path(os.fsdecode(words[words.index(b"supervise") + 1]))


def _age(ticks: int) -> float:
    """Return the seconds since `ticks` after boot (proc(5), starttime)."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
