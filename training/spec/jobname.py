"""PURE: which job a folder belongs to, read out of its path below a scratch folder (see folder)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from .folder import NODEJOBS

ATTEMPT = "attempt"
OF_ATTEMPT = re.compile(r"runs/(\d{1,9})/(\d{1,9})/node(\d{1,4})")
OF_NODEJOB = re.compile(r"runs/(\d{1,9})/([a-z]+)/(\d{1,9})")
KINDS = {folder: kind for kind, folder in NODEJOBS.items()}


@dataclass(frozen=True)
class JobName:
    """`number`: of the attempt, or the id of a job of one node of this `kind`. `node_rank`: of an attempt's alone."""

    kind: str
    run: int
    number: int
    node_rank: int | None = None


def named(scratch: str, folder: str) -> JobName | None:
    """Return whose folder it is; None where no job of ours has such a one, or it isn't below `scratch`."""
    path = PurePosixPath(folder)
    if ".." in path.parts or not path.is_relative_to(scratch):
        return None
    below = path.relative_to(scratch).as_posix()
    if found := OF_ATTEMPT.fullmatch(below):
        return JobName(ATTEMPT, int(found[1]), int(found[2]), int(found[3]))
    found = OF_NODEJOB.fullmatch(below)
    return JobName(KINDS[found[2]], int(found[1]), int(found[3])) if found and found[2] in KINDS else None


def told(folder: str) -> JobName | None:
    """Return whose folder it is that a node has found below its scratch folder.

    The node resolves links, so that its path need not begin with the scratch as people name it.
    """
    parents = PurePosixPath(folder).parents
    return named(str(parents[3]), folder) if len(parents) > 3 else None
