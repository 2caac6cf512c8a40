"""Earlier attempts in the same folder: the next one's number, and the checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ..belonging import of_job
from ..saving import checkpoints
from ..spec.folder import Scratch, checkpoint_name
from ..spec.lint import Problem, Refused


@dataclass(frozen=True)
class Found:
    """`place`: (attempt, step), None: start afresh. `skipped`: newer ones and why they don't count."""

    place: tuple[int, int] | None = None
    skipped: list[str] = field(default_factory=list)


def attempt(scratch: Path, run: int, rank: int, wanted: int | None) -> int:
    """Return the new attempt's number: the one that is wanted, else the first that this node has not used.

    Raises Refused where an earlier one still runs: it would delete the checkpoints that this one goes on from.
    """
    used = [n for n in attempts(scratch, run) if _job(scratch, run, n, rank).exists()]
    if running := [n for n in used if of_job(_job(scratch, run, n, rank))]:
        fix = f"Wait for its end, or: python -m training signal {_job(scratch, run, running[-1], rank)} term"
        raise Refused([Problem("--out", f"attempt {running[-1]} still runs there", fix)])
    if wanted is None:
        return max(used, default=0) + 1
    if wanted < 1 or wanted in used:
        why = "it is there already" if wanted in used else "attempts count from 1"
        raise Refused([Problem("--attempt", why, f"Take {max(used, default=0) + 1}, or leave it out.")])
    return wanted


def attempts(scratch: Path, run: int) -> list[int]:
    """Return the numbers of the attempts there are, oldest first."""
    root = Path(Scratch(PurePosixPath(scratch)).run(run))
    return sorted(int(path.name) for path in root.iterdir() if path.name.isdecimal()) if root.is_dir() else []


def _job(scratch: Path, run: int, number: int, rank: int) -> Path:
    return Path(Scratch(PurePosixPath(scratch)).job(run, number, rank).path)


def checkpoint(scratch: Path, run: int, wanted: str | None) -> Found:
    """Return the newest complete checkpoint (`latest`), or that of a step; raise Refused where there is none."""
    if wanted is None:
        return Found()
    if wanted != "latest" and not wanted.isdecimal():
        raise Refused([Problem("--resume", f"{wanted} is no step", "Give latest, or a checkpoint's step.")])
    skipped: list[str] = []
    for number, step in _all(scratch, run):
        if wanted not in ("latest", str(step)):
            continue
        folder = Path(Scratch(PurePosixPath(scratch)).checkpoint(run, number, step))
        if not (faults := checkpoints.faults(folder)):
            return Found((number, step), skipped)
        skipped.append(f"attempt {number}, {checkpoint_name(step)}: {'; '.join(faults[:3])}")
    there = ", ".join(str(step) for _, step in _all(scratch, run)) or "none"
    why = "; ".join(skipped) or f"there is no such checkpoint under {scratch}, only steps: {there}"
    fix = "Copy every node's part into it, choose another, or leave it out to start afresh."
    raise Refused([Problem("--resume", why, fix if skipped else "Choose one of them, or leave it out.")])


def _all(scratch: Path, run: int) -> Iterator[tuple[int, int]]:
    """Yield (attempt, step): the newest attempt's newest first, then the attempt before."""
    for number in reversed(attempts(scratch, run)):
        root = Path(Scratch(PurePosixPath(scratch)).checkpoints(run, number))
        for step in reversed(checkpoints.steps(root)):
            yield number, step
