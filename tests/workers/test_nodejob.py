"""A job of one node is cancelled wherever it stands, and is called so when nothing of it is left."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path, PurePosixPath

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from tests.workers.test_exporting import drive, folder, holds, starts
from tests.workers.world import PLANS, Following, World
from training.saving.checkpoints import Manifest, write_manifest
from training.spec.folder import Scratch
from training.spec.lint import Refused
from webapp.runs import actions, jobkinds
from webapp.runs.models import Checkpoint, Event, Export, Run, Stream
from workers.export.exporting import Exporting
from workers.nodejob import heed
from workers.nodejob.kinds import WORKS

# In the place of an export: one that heeds the request to stop, and one that never looks for it.
STANDS_IN = """#!/bin/sh
case "$2 $3" in "training plan-export") exec {python} {plans} ;; esac
case "$2 $3" in "training export") {what}; exit 1 ;; esac
exec {python} "$@"
"""
HEEDS = "while [ ! -e stop ]; do sleep 0.05; done"
DEAF = "while :; do sleep 0.1; done"


@pytest.fixture
def trained(world: World, following: Following) -> Run:
    """Return a run with a complete checkpoint that is on its node, and holds nothing: no export of it is ever made."""
    run = world.run()
    actions.place(run.attempt, world.nodes)
    now = timezone.now()
    Checkpoint.objects.create(attempt=run.attempt, step=4, nodes=1, world_size=1, completed_at=now)
    folder = Scratch(PurePosixPath(world.nodes[0].scratch)).checkpoint(run.pk, 1, 4)
    Path(folder).mkdir(parents=True)
    write_manifest(Path(folder), Manifest(step=4, node_rank=0, nodes=1, world_size=1, files={}))
    return run


def stand_in(world: World, what: str) -> None:
    (world.folder / "python").write_text(STANDS_IN.format(what=what, python=sys.executable, plans=PLANS))


def told(export: Export) -> list[str]:
    rows = Event.objects.filter(source=f"exportstate@{export.pk}").order_by("number")
    return [row.data.get("asked") or row.data["new"] for row in rows]


def test_every_kind_with_rows_has_its_steps() -> None:
    assert {kind.model.KIND for kind in jobkinds.every()} == set(WORKS)


def test_a_job_is_cancelled_wherever_it_stands(world: World, trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_is_ended_before_anything_is_touched(world, trained)
    stand_in(world, HEEDS)
    heeds_is_only_asked(world, trained)
    stand_in(world, DEAF)
    monkeypatch.setattr(Exporting, "grace", timedelta(0))
    is_deaf_is_ended_and_proven_gone(world, trained)
    assert holds(world) == 0
    assert not world.supervisors()
    assert not Stream.objects.filter(closed_at=None).exists()


def waits_is_ended_before_anything_is_touched(world: World, trained: Run) -> None:
    export = actions.export(trained, world.user)
    actions.cancel(export, "ada")
    actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")
    assert (export.reason, export.node, starts(world)) == ("stopped", None, 0)
    assert told(export) == ["queued", "cancel", "cancelled"]
    with pytest.raises(Refused, match="it is cancelled"):
        actions.cancel(export, "ada")


def heeds_is_only_asked(world: World, trained: Run) -> None:
    export = drive(world, trained, actions.export(trained, world.user), "running")
    actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")
    assert not any("training signal" in command and "kill" in command for h in world.hosts for command in h.commands)


def is_deaf_is_ended_and_proven_gone(world: World, trained: Run) -> None:
    export = drive(world, trained, actions.export(trained, world.user), "running")
    assert world.supervisors()
    assert (folder(export) / "env").stat().st_mode & 0o777 == 0o600
    Export.objects.filter(pk=export.pk).update(state="gathering")  # as its starter left it, killed before saying so
    actions.cancel(export, "ada")
    drive(world, trained, export, "cancelled")
    assert not (folder(export) / "env").exists()


def test_a_step_that_takes_long_is_broken_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heed, "POLL_SECONDS", 0.01)
    checkpoint = Checkpoint.objects.create(attempt=world.run().attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=checkpoint, dtype="float32")
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("ended")

    async def nothing() -> None:
        pass

    assert async_to_sync(heed.unless_cancelled)(export, nothing())
    Export.objects.update(cancel_asked_at=timezone.now())
    assert not async_to_sync(heed.unless_cancelled)(export, work())
    assert ends == ["ended"]
