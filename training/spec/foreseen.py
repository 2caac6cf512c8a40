"""PURE: how many checkpoints the rule leaves on disk, before the first one is written.

Counted, not simulated: a run may save a million times. Which ones are best is not known beforehand, so it is reckoned
that they are never among those that stay anyhow: the most that can be.
"""

from __future__ import annotations

from dataclasses import dataclass

from .sections.checkpoints import Checkpoints

SHOWN = 4  # of a list of steps


@dataclass(frozen=True)
class Saves:
    """The saves that a run of `steps` makes by the rule's steps, oldest first.

    Those by the clock, or by a stop, come on top, and take no place for good.
    """

    rule: Checkpoints
    steps: int

    @property
    def on_grid(self) -> int:
        return self.steps // self.rule.every_steps

    @property
    def last(self) -> int:
        """The step of one more at the end, off the grid; 0: none."""
        return self.steps if self.rule.at_end and self.steps % self.rule.every_steps else 0

    def __len__(self) -> int:
        return self.on_grid + bool(self.last)

    def at(self, number: int) -> int:
        """Return the step of save `number`, counted from 1."""
        return number * self.rule.every_steps if number <= self.on_grid else self.last


def standing(rule: Checkpoints, saves: int, *, off_grid: int = 0) -> int:
    """Return how many complete checkpoints are there at most after `saves` by steps and `off_grid` newer others.

    It never falls as `saves` grows.
    """
    newest = min(rule.keep, saves + off_grid)
    older = max(0, saves + off_grid - newest)  # of which those off the grid are among the newest, as at_end's is
    for_good = older // (rule.keep_every // rule.every_steps) if rule.keep_every else 0
    return newest + for_good + min(rule.keep_best, older - for_good)


@dataclass(frozen=True)
class Foreseen:
    """What is there at the end of a run. `newest`, `for_good`: their steps; `best`: how many more there may be.
    `most`: on disk at once, the one being written among them."""

    rule: Checkpoints
    steps: int
    newest: tuple[int, ...]
    for_good: range
    best: int
    most: int

    @property
    def sentence(self) -> str:
        """Say it for a person: "with 2,000 steps these stay: ...; at most 6 on disk at once"."""
        if not self.newest:
            return f"with {self.steps:,} steps none is saved"
        parts = [f"{_listed(self.newest)} (newest {self.rule.keep})"]
        if self.for_good:
            parts.append(f"{_listed(self.for_good)} (every {self.rule.keep_every:,})")
        if self.best:
            parts.append(f"{'the' if self.best == 1 else self.best} best by {self.rule.best_metric}")
        at_once = f"at most {self.most:,} on disk at once, the one being written among them"
        return f"with {self.steps:,} steps these stay: {', '.join(parts)}; {at_once}"


def foreseen(rule: Checkpoints, steps: int) -> Foreseen:
    """Return what the rule leaves of a run of `steps` that goes to its end."""
    saves = Saves(rule, steps)
    count = len(saves)
    newest = tuple(saves.at(number) for number in range(max(1, count - rule.keep + 1), count + 1))
    for_good = range(rule.keep_every, newest[0], rule.keep_every) if rule.keep_every and newest else range(0)
    older = count - len(newest)
    return Foreseen(rule, steps, newest, for_good, min(rule.keep_best, older - len(for_good)), most(rule, steps))


def most(rule: Checkpoints, steps: int) -> int:
    """Return how many are on disk at once at most, the one being written among them, torn ones of a kill left out."""
    saves = Saves(rule, steps)
    if rule.every_minutes:  # as many more as the clock makes, which fill the places of the newest and the best
        for_good = saves.on_grid // (rule.keep_every // rule.every_steps) if rule.keep_every else 0
        return rule.keep + rule.keep_best + for_good + 1
    return standing(rule, len(saves) - 1) + 1 if len(saves) else 0


def _listed(steps: range | tuple[int, ...]) -> str:
    """Return the steps, the middle of many left out."""
    shown = (
        [f"{step:,}" for step in steps]
        if len(steps) <= SHOWN
        else [f"{steps[0]:,}", f"{steps[1]:,}", "...", f"{steps[-1]:,}"]
    )
    return ", ".join(shown)
