"""A tracker may fail, hang or be missing: training goes on, or is refused before it began."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from transformers import TrainerCallback, TrainerControl, TrainerState

from training.journal import Journal, tail
from training.spec.lint import Refused
from training.spec.sections.trackers import Trackers
from training.watch import trackers
from training.watch.trackers import Aside, check_trackers


class Server(TrainerCallback):
    """A tracker's callback whose server does as told."""

    def __init__(self, error: Exception | None = None, open_: bool = True):
        self.error = error
        self.gate = threading.Event()
        self.seen: list[tuple[int, float]] = []
        if open_:
            self.gate.set()

    def on_log(
        self, args: object, state: TrainerState, control: object, logs: dict[str, float], **more: object
    ) -> None:
        self.gate.wait()
        if self.error:
            raise self.error
        self.seen.append((state.global_step, logs["loss"]))


def steps(aside: Aside, count: int) -> None:
    state, control = TrainerState(), TrainerControl()
    aside.on_train_begin(None, state, control)
    for step in range(1, count + 1):
        state.global_step = step
        aside.on_log(None, state, control, logs={"loss": 1 / step})
    aside.on_train_end(None, state, control)


def warnings(path: Path) -> list[str]:
    return [e.data["text"] for e in tail(path) if e.kind == "warning"] if path.exists() else []


def test_it_is_told_each_step_as_it_was(tmp_path: Path) -> None:
    server = Server()
    steps(Aside("wandb", server, Journal(tmp_path / "events.jsonl")), 5)
    assert server.seen == [(step, 1 / step) for step in range(1, 6)]
    assert warnings(tmp_path / "events.jsonl") == []


def test_an_error_ends_it_with_a_warning_that_shows_no_login(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    steps(Aside("mlflow", Server(ConnectionError("no route to http://me:secret@host/api")), Journal(events)), 3)
    (text,) = warnings(events)
    assert text == "the tracker mlflow is told nothing more: ConnectionError: no route to http://host/api"


def test_one_that_hangs_holds_no_step_and_the_end_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "CLOSE_SECONDS", 0.05)
    server = Server(open_=False)
    steps(Aside("wandb", server, Journal(tmp_path / "events.jsonl")), trackers.WAITING + 50)
    assert server.seen == []
    assert "did not take its last figures" in warnings(tmp_path / "events.jsonl")[0]
    server.gate.set()


def test_one_that_is_not_installed_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trackers.PACKAGES, "wandb", ("a_package_that_nobody_has",))
    check_trackers(Trackers(names=("tensorboard",)))
    with pytest.raises(Refused, match=r"wandb is not installed on this node\. pip install wandb there"):
        check_trackers(Trackers(names=("tensorboard", "wandb")))
