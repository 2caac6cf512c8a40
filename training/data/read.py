"""A job's sequences, made or found, and what they came to told in its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..journal import Journal, tail
from ..spec.events import Kind
from ..spec.job import TrainJob
from ..spec.recipe import Recipe
from .artefact import Prepared, prepare


def read(job: TrainJob, tokenizer: Any, story: Journal | None, pause: Callable[[], None] = lambda: None) -> Prepared:
    """Return the job's artefact; any process of the node may call this, and all but one only read.

    `story`: the journal of the first node, None elsewhere. `pause`, and what this raises: as of `prepare`.
    """

    def making() -> None:
        if story:
            story.emit(Kind.PHASE, name="tokenising")

    prepared = prepare(job, tokenizer, pause, making)
    if story and not _told(story):
        _tell(story, prepared, job.recipe)
    return prepared


def _tell(story: Journal, prepared: Prepared, recipe: Recipe) -> None:
    story.emit(Kind.DATA, **prepared.facts())
    for name, counts in prepared.counts.items():
        if counts.untrained:
            story.emit(Kind.WARNING, text=f"{name}: {counts.untrained_text}")
    every = recipe.optimisation.evaluate_every
    if every and "test" not in prepared.counts:
        text = f"optimisation.evaluate_every is {every}, but there are no test rows: give some, or set data.test_share"
        story.emit(Kind.WARNING, text=text)
    if recipe.data.test_share and not every:
        text = "rows are held out by data.test_share, but optimisation.evaluate_every is 0: they are never evaluated on"
        story.emit(Kind.WARNING, text=text)


def _told(story: Journal) -> bool:
    return story.path.exists() and any(event.kind == Kind.DATA for event in tail(story.path))
