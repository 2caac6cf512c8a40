"""Before the first step: will the disk hold the checkpoints to come? Told, not refused: an estimate may be wrong.

The site refuses beforehand what clearly can't fit; here, by hand as well, it is known what is trained and who shares a
disk.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..journal import Journal
from ..ranks import Ranks
from ..spec.bytes_on_disk import Trained, checkpoint_bytes, node_share
from ..spec.events import Kind
from ..spec.forecast import Course, Disk, outlook
from ..spec.recipe import Recipe
from .saver import Saver


class Room(TrainerCallback):
    """Warns on the first rank, of each disk that will be full before training has ended. All ranks must have it."""

    def __init__(self, saver: Saver, what: Trained, recipe: Recipe, ranks: Ranks, story: Journal | None):
        self.saver = saver
        self.what = what
        self.recipe = recipe
        self.ranks = ranks
        self.story = story

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        course = Course(state.max_steps, step=state.global_step, since=state.global_step)
        mine = self._told(course) if self.saver.owner else ""
        for text in filter(None, self.ranks.gather(mine)):
            if self.story:
                self.story.emit(Kind.WARNING, state.global_step, text=text)

    def _told(self, course: Course) -> str:
        world = self.ranks.world_size
        here = node_share(checkpoint_bytes(self.what, self.recipe, world), self.saver.on_disk, world)
        seen = outlook(self.recipe.checkpoints, course, Disk(free_on(self.saver.root), here))
        place = f"{self.saver.root} on node {self.ranks.node_rank}"
        return "" if seen.fits else f"checkpoints in {place}, as estimated: {seen.sentence}"


def trained(model: Any) -> Trained:
    """Return what is moved of a model that is not sharded yet: a tied tensor once, its numbers once more as `twice`."""
    named = [(name, p) for name, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
    moved = {id(parameter): parameter for _, parameter in named}
    numbers = sum(parameter.numel() for parameter in moved.values())
    return Trained(numbers, len(moved), sum(parameter.numel() for _, parameter in named) - numbers)


def free_on(folder: Path) -> int:
    """Return the free bytes of the disk on which `folder` is, or will be made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free
