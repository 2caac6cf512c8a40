"""Trackers beside our own events: tensorboard, wandb, mlflow, told from a thread of their own on the first rank.

Their callbacks are transformers' own. A server that is slow or gone may cost a tracker its figures, never a step:
what happens is handed over through a queue, and the first error ends that tracker, with a warning.
"""

from __future__ import annotations

import copy
import os
import queue
import re
import threading
from importlib.util import find_spec
from typing import Any

from transformers import Trainer, TrainerCallback
from transformers.integrations import get_reporting_integration_callbacks

from ..journal import Journal
from ..spec.events import Kind
from ..spec.folder import JobFolder
from ..spec.lint import Problem, Refused
from ..spec.sections.trackers import Trackers

# name: packages any one of which will do
PACKAGES = {"tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",), "mlflow": ("mlflow",)}
WAITING = 1000
CLOSE_SECONDS = 30.0
LOGIN = re.compile(r"//[^/@\s]+@")  # in an address that an error repeats


def check_trackers(trackers: Trackers) -> None:
    """Raise Refused where a tracker is asked for that is not installed here."""
    missing = [name for name in trackers.names if not any(map(find_spec, PACKAGES[name]))]
    if missing:
        why = f"{', '.join(missing)} is not installed on this node"
        raise Refused([Problem("trackers.names", why, f"pip install {' '.join(missing)} there, or leave it out.")])


def place_trackers(trackers: Trackers, folder: JobFolder) -> None:
    """Tell the trackers' libraries, by environment, under which project and where to write."""
    if trackers.names:
        os.environ["WANDB_PROJECT"] = os.environ["MLFLOW_EXPERIMENT_NAME"] = trackers.project
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(folder.tensorboard)
        os.environ.setdefault("WANDB_DIR", str(folder.path))


def put_aside(trainer: Trainer, story: Journal | None) -> None:
    """Take the trackers out of the Trainer's own loop; put them into threads on the first rank, which has a story."""
    for name in trainer.args.report_to:
        (kind,) = get_reporting_integration_callbacks([name])
        callback = trainer.pop_callback(kind)
        if story:
            trainer.add_callback(Aside(name, callback, story))


class Aside(TrainerCallback):
    """Hands what happens to a tracker's callback, in a thread, in order."""

    def __init__(self, name: str, callback: TrainerCallback, story: Journal):
        self.name = name
        self.callback = callback
        self.story = story
        self._queue: queue.Queue[tuple[str, tuple[Any, ...], dict[str, Any]] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, name=f"tracker {name}", daemon=True)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._thread.start()
        self._hand_over("on_train_begin", args, state, control, kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self._hand_over("on_log", args, state, control, {**kwargs, "logs": dict(logs)})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._hand_over("on_train_end", args, state, control, kwargs)
        if self._put(None):
            self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            self._warn(self.story, f"it did not take its last figures within {CLOSE_SECONDS:.0f} s")

    def _hand_over(self, event: str, args: Any, state: Any, control: Any, more: dict[str, Any]) -> None:
        # The state as it is now: the thread may be some steps behind.
        if self._thread.is_alive():
            self._put((event, (args, copy.copy(state), copy.copy(control)), more))

    def _put(self, item: tuple[str, tuple[Any, ...], dict[str, Any]] | None) -> bool:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            return False
        return True

    def _work(self) -> None:
        story = Journal(self.story.path)  # one thread, one journal
        while item := self._queue.get():
            event, positional, more = item
            try:
                getattr(self.callback, event)(*positional, **more)
            # Whatever a tracker's library raises, it must not end the training that it watches.
            except Exception as error:  # noqa: BLE001
                self._warn(story, f"{type(error).__name__}: {error}"[:300])
                return

    def _warn(self, story: Journal, text: str) -> None:
        text = LOGIN.sub("//", text)
        story.emit(Kind.WARNING, text=f"the tracker {self.name} is told nothing more: {text}")
