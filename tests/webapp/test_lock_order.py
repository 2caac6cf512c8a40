"""Whoever changes a job's row takes its run's row first: in another order two transactions wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from training.spec.exportplan import ExportPlan
from webapp.deliveries.actions import deliver
from webapp.runs import actions
from webapp.runs.models import Checkpoint, Export, Run
from webapp.trials.actions import ask
from workers.export.exporting import Exporting

from .rows import World
from .trials import exported, succeeded

PLAN = ExportPlan()


def waiting(checkpoint: Checkpoint, state: str) -> Export:
    now = timezone.now()
    user = checkpoint.attempt.run.owner
    return Export.objects.create(
        checkpoint=checkpoint, dtype="base", state=state, waits=True, planned_at=now, requested_by=user
    )


def plan_arrives(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = waiting(checkpoint, "planning")
    return lambda: Exporting()._keep(export, PLAN)


def start(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = waiting(checkpoint, "planned")
    return lambda: actions.start(export, "ada")


def cancel(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = waiting(checkpoint, "planned")
    return lambda: actions.cancel(export, "ada")


def resume(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = waiting(checkpoint, "failed")
    return lambda: actions.go_on(export, "ada")


def order(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    return lambda: actions.export(checkpoint.attempt.run, world.user)


def send(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = exported(checkpoint, world.nodes[0])
    return lambda: deliver(export, world.user, folder="/elsewhere/model")


def try_it(world: World, checkpoint: Checkpoint) -> Callable[[], Any]:
    export = exported(checkpoint, world.nodes[0])
    return lambda: ask(export.run, world.user, [export], [{"text": "hello"}], {})


@pytest.mark.parametrize("prepare", [plan_arrives, start, cancel, resume, order, send, try_it])
def test_the_run_comes_first(
    world: World, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[World, Checkpoint], Callable[[], Any]]
) -> None:
    act = prepare(world, succeeded(world))
    with held(monkeypatch) as tables:
        act()
    assert tables[0] == Run._meta.db_table
    assert set(tables) - {Run._meta.db_table}, "nothing of the job was written: the question was not asked"


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the tables of which rows are locked or written, in order. SQLite's statements don't name a lock."""
    tables: list[str] = []
    before = QuerySet.select_for_update

    def locked(self: QuerySet[Any], *args: Any, **more: Any) -> QuerySet[Any]:
        tables.append(self.model._meta.db_table)
        return before(self, *args, **more)

    def written(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        words = sql.replace('"', "").split()
        if words[0] == "UPDATE":
            tables.append(words[1])
        elif words[0] == "INSERT":
            tables.append(words[2])
        return execute(sql, *rest)

    with monkeypatch.context() as patched, connection.execute_wrapper(written):
        patched.setattr(QuerySet, "select_for_update", locked)
        yield tables
