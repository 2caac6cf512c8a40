"""An export's node is asked what it will be: one export at a time, again where that broke off, until cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from tests.workers import test_nodejob
from tests.workers.test_exporting import drive, holds
from tests.workers.world import GENEROUS, World
from webapp.runs import actions
from webapp.runs.models import Export, Run
from workers.nodejob import advance as nodejob
from workers.nodejob import heed

trained = test_nodejob.trained


def test_a_node_that_is_asked_may_break_off(world: World, trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions.begin, "FIRST_DELAY", timedelta(0))
    monkeypatch.setattr(heed, "POLL_SECONDS", 0.05)
    killed_it_is_asked_again(world, trained)
    cut_off_it_is_asked_again(world, trained)
    others_wait_and_a_cancel_is_heeded(world, trained)
    assert holds(world) == 0


def killed_it_is_asked_again(world: World, trained: Run) -> None:
    world.behave(planning="dies")
    export = drive(world, trained, actions.export(trained, world.user), "planning")
    nodejob.advance("export", export.pk)
    export.refresh_from_db()
    assert (export.state, export.start, export.retried) == ("queued", 1, 1)
    world.behave()
    drive(world, trained, export, "gathering")
    cancelled(world, trained, export)


def cut_off_it_is_asked_again(world: World, trained: Run) -> None:
    world.behave(planning="hangs")
    export = drive(world, trained, actions.export(trained, world.user), "planning")
    with asking(world, export):
        world.hosts[0].cut()
    world.behave()
    export.refresh_from_db()
    assert (export.state, export.reason_text, export.retried) == ("planning", "", 0)
    drive(world, trained, export, "gathering")
    cancelled(world, trained, export)


def others_wait_and_a_cancel_is_heeded(world: World, trained: Run) -> None:
    world.behave(planning="hangs")
    first, second = (actions.export(trained, world.user, dtype=dtype) for dtype in ("float32", "float16"))
    drive(world, trained, first, "planning")
    nodejob.advance("export", second.pk)
    second.refresh_from_db()
    assert (second.state, second.node) == ("queued", None), "its node is asked about the other one"
    with asking(world, first):
        actions.cancel(first, "ada")
    cancelled(world, trained, first)
    drive(world, trained, second, "planning")
    world.behave()
    cancelled(world, trained, second)


def cancelled(world: World, trained: Run, export: Export) -> None:
    if not export.cancel_asked_at:
        actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")


@contextmanager
def asking(world: World, export: Export) -> Iterator[None]:
    """Take the step that asks the node, do the block while the node is at it, and wait for the step's end."""
    asked = Path(world.nodes[0].scratch) / "asked"
    asked.unlink(missing_ok=True)
    step = threading.Thread(target=one_step, args=(export.pk,))
    step.start()
    world.drive(export.run, lambda _: asked.exists(), step=lambda: None)
    yield
    step.join(GENEROUS)
    assert not step.is_alive(), "it went on asking"


def one_step(export_id: int) -> None:
    try:
        nodejob.advance("export", export_id)
    finally:
        connection.close()
