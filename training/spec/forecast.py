"""PURE: will the disk hold the checkpoints to come, and when not, from which step on?

Reckoned with the most that the rule can leave, see foreseen. The bytes of a checkpoint are an estimate until there is
one (bytes_on_disk), then the real ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .foreseen import Saves, most, standing
from .lint import Problem
from .sections.checkpoints import Checkpoints

What = Literal["checkpoint", "export"]
NEAR = 64 << 20  # bytes by which two looks at one disk may differ
UNSURE = 0.05  # of an estimate: what may be that much too large refuses nothing


@dataclass(frozen=True)
class Disk:
    """One disk, in bytes. `free`: now. `checkpoint`: that one takes here.

    `there`: checkpoints of this attempt that lie here already; `beside`: those of them that only a pin or a hold keeps.
    `export`: that follows at the end; 0: none.
    """

    free: int
    checkpoint: int
    there: int = 0
    beside: int = 0
    export: int = 0


@dataclass(frozen=True)
class Course:
    """Where training stands. `since`: the step this attempt began at. `seconds`: that a step takes; None: not known."""

    steps: int
    step: int = 0
    since: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class Outlook:
    """What will be. `most`: checkpoints here at once; `need`: bytes more than now, at the most.

    Where it does not fit, `full_at` is the step of the save (or of the export behind it) for which there is no room,
    `after` the last step before it that is saved, 0: none; `seconds` until that save. `full_at` is 0 where there would
    be room but for saves by the clock, which come nobody knows when.
    """

    fits: bool
    most: int
    need: int
    free: int
    what: What = "checkpoint"
    full_at: int = 0
    after: int = 0
    seconds: float | None = None

    @property
    def sentence(self) -> str:
        need = f"at most {self.most:,} at once and {gigabytes(self.need)} more than now, of {gigabytes(self.free)} free"
        if self.fits:
            return f"checkpoints fit: {need}"
        full = f"full after step {self.after:,}" if self.after else "no room for the first one"
        if not self.full_at:
            full = "it may be full, with those saved by the clock"
        elif self.what == "export":
            full = f"no room for the export after step {self.full_at:,}"
        return f"{full}: {need}"


def outlook(rule: Checkpoints, course: Course, disk: Disk) -> Outlook:
    """Return whether what training will still write fits on `disk`, and when not, from when on."""
    saves = Saves(rule, course.steps)
    done, last = _saved(saves, course.step), len(saves)

    def need(number: int) -> int:
        return max(0, _at_once(saves, number, course.since) + disk.beside - disk.there) * disk.checkpoint

    at_once = max(disk.there, _most(saves, course.since) + disk.beside) if done < last else disk.there
    worst = (at_once - disk.there) * disk.checkpoint
    end = _more_at_end(saves, course, disk) * disk.checkpoint + disk.export if disk.export else 0
    known = Outlook(True, at_once, max(worst, end), disk.free)
    ahead = range(done + 1, last + 1)
    first = bisect_left(ahead, True, key=lambda number: need(number) > disk.free)  # what is there never falls
    if first < len(ahead):
        after = max(course.since, saves.at(ahead[first] - 1) if ahead[first] > 1 else 0)
        return _full(known, course, "checkpoint", saves.at(ahead[first]), after)
    if worst > disk.free:
        return replace(known, fits=False)
    return _full(known, course, "export", course.steps, course.steps) if end > disk.free else known


def _full(known: Outlook, course: Course, what: What, at: int, after: int) -> Outlook:
    wait = None if course.seconds is None else max(0, at - course.step) * course.seconds
    return replace(known, fits=False, what=what, full_at=at, after=after, seconds=wait)


def _saved(saves: Saves, step: int) -> int:
    """Return how many of the saves lie at or before `step`."""
    return len(saves) if step >= saves.steps else min(step // saves.rule.every_steps, len(saves))


def _at_once(saves: Saves, number: int, since: int) -> int:
    """Return how many there are at most while save `number` is written, that one among them."""
    return _left(saves, number - 1, since) + 1


def _left(saves: Saves, number: int, since: int) -> int:
    """Return how many stay at most after save `number`, of an attempt that began at step `since`."""
    rule = saves.rule
    own = max(0, number - since // rule.every_steps)
    uneven = 1 if rule.keep_every and since % rule.keep_every else 0  # the first multiple may come early
    return min(own, standing(rule, own) + uneven)


def _most(saves: Saves, since: int) -> int:
    """Return how many there are at once at most, those that the clock makes among them."""
    if saves.rule.every_minutes:
        return most(saves.rule, saves.steps)
    return _at_once(saves, len(saves), since)


def _more_at_end(saves: Saves, course: Course, disk: Disk) -> int:
    """Return how many more than now stay at the end."""
    return max(0, _left(saves, len(saves), course.since) + disk.beside - disk.there)


def disk_problem(node: str, rule: Checkpoints, course: Course, disk: Disk) -> Problem | None:
    """Return what is wrong where a run clearly can't save twice on the disk of `node`; None where it may.

    One checkpoint stays until the next is complete, so that two is the least; where only one is made, it is one.
    """
    saves = Saves(rule, course.steps)
    least = min(2, len(saves) - _saved(saves, course.since))
    if round(least * disk.checkpoint * (1 - UNSURE)) <= disk.free:
        return None
    what = "the last checkpoint and the one being written take" if least == 2 else "a checkpoint takes"
    why = f"{what} {gigabytes(least * disk.checkpoint)} on node {node}, which has {gigabytes(disk.free)} free"
    return Problem("checkpoints", why, "Free space there, take a larger disk or more nodes, or train an adapter.")


def look_shared(disks: Sequence[tuple[int, int]]) -> bool:
    """Tell whether several nodes seem to see one disk: (total, free) is the same for all, as near as looks can be."""
    free = [free for _, free in disks]
    return len(disks) > 1 and len({total for total, _ in disks}) == 1 and max(free) - min(free) <= NEAR


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
