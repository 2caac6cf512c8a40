"""A run with exports that are ready, and trials that are fed with what their node would write."""

from __future__ import annotations

from typing import Any

from training.spec.events import Event as Line
from webapp.fleet.models import Node
from webapp.runs import journal, lifecycle, sources
from webapp.runs.models import Checkpoint, Export, Stream
from webapp.runs.states import RunState
from webapp.trials.models import Trial

from .rows import START, World


def exported(checkpoint: Checkpoint, node: Node, **how: Any) -> Export:
    """Return an export that has become ready, as the service makes one."""
    owner = checkpoint.attempt.run.owner
    fields = {"dtype": "float32", "node": node, "slot": vars(node.slot()), "requested_by": owner}
    made = Export.objects.create(checkpoint=checkpoint, **fields | how)
    for state in ("gathering", "running", "ready"):
        assert lifecycle.move_job(made, state)
    return made


def succeeded(world: World, **overrides: Any) -> Checkpoint:
    """Return the checkpoint at step 4 of a run that has ended."""
    feed = world.running(**overrides)
    checkpoint = feed.checkpoint(4)
    feed.end(RunState.SUCCEEDED)
    return checkpoint


class Node0:
    """The node of one trial: writes lines of its own file."""

    def __init__(self, trial: Trial):
        source = sources.events("trial", trial.pk)
        self.stream = Stream.objects.create(
            attempt=trial.told_in, node=trial.node, source=source, path="/e", job_kind="trial", job_id=trial.pk
        )

    def write(self, kind: str, **data: Any) -> None:
        seq = self.stream.last_seq + 1
        journal.record(self.stream, [Line(seq, START + seq, kind, None, data)], seq)

    def token(self, text: str, model: int = 0, prompt: int = 0, tokens: int = 1) -> None:
        self.write("token", model=model, prompt=prompt, text=text, tokens=tokens)

    def answer(self, text: str, model: int = 0, prompt: int = 0, by: str = "eos", **more: Any) -> None:
        figures = {"tokens": 5, "seconds": 2.0, "tokens_per_second": 2.5, "first_token_seconds": 0.5}
        self.write("answer", model=model, prompt=prompt, text=text, stopped_by=by, **figures | more)


def moved(trial: Trial, *states: str, **why: Any) -> Trial:
    for state in states:
        assert lifecycle.move_job(trial, state, **(why if state == states[-1] else {}))
    return trial
