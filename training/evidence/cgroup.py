"""How many processes the kernel has killed because this job's cgroup had no memory left. See cgroups(7)."""

from __future__ import annotations

from pathlib import Path

from ..memory import CGROUPS, PROCESS, group_of

# (controller, where its tree is mounted, file) of cgroup v2, v2 beside v1, and v1
PLACES = (
    ("", "", "memory.events"),
    ("", "unified", "memory.events"),
    ("memory", "memory", "memory.oom_control"),
)


def oom_kills(cgroups: Path = CGROUPS, process: Path = PROCESS) -> int | None:
    """Return the count `oom_kill` of this process's group and those below it; None where it can't be read."""
    for controller, root, name in PLACES:
        path = cgroups / root / group_of(process, controller).relative_to("/") / name
        if (count := _count(path)) is not None:
            return count
    return None


def _count(path: Path) -> int | None:
    try:
        pairs = (line.split() for line in path.read_text("ascii").splitlines())
        return next((int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == "oom_kill"), None)
    except (OSError, ValueError):
        return None
