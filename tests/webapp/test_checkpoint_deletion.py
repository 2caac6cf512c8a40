"""A deletion of checkpoints is shown before it is asked, and refused where it must be; tidying up spares some."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Refused
from webapp.runs import actions, lifecycle
from webapp.runs.models import Checkpoint, Event, Export
from webapp.runs.shelf import doom
from webapp.runs.states import ExportState, RunState

from .rows import Feed, World
from .shelf import at, said, text_of


def test_a_deletion_is_shown_with_its_bytes_before_it_is_asked(page: Client, stopped: Feed) -> None:
    two, four = at(stopped.run, 2), at(stopped.run, 4)
    address = f"/runs/{stopped.run.pk}/checkpoints/doomed?checkpoint={two.pk}&checkpoint={four.pk}"
    text = text_of(page.get(address))
    assert "Delete 2 checkpoints: 2 kB" in text
    assert "step 2, attempt 1: 500 B on alpha, 500 B on beta" in text
    assert "In all 1 kB on alpha, 1 kB on beta." in text
    assert "doom-loss" not in text
    assert "<html" not in page.get(address, headers={"HX-Request": "true"}).content.decode()
    page.post(f"/runs/{stopped.run.pk}/checkpoints/delete", {"checkpoint": [two.pk, four.pk]})
    rows = list(Checkpoint.objects.filter(delete_asked_by="ada"))
    assert [(row.step, row.usable, row.deleted_at, row.settled) for row in rows] == [
        (2, False, None, False),
        (4, False, None, False),
    ]
    text = text_of(page.get(f"/runs/{stopped.run.pk}/checkpoints/"))
    assert text.count("✕ being deleted") == 2
    again = actions.delete_checkpoints(stopped.run, rows, "bob")
    assert again.checkpoints == []
    assert Event.objects.filter(kind="shelf").count() == 2


def test_the_row_stays_with_who_when_and_what_was_freed(page: Client, stopped: Feed) -> None:
    Checkpoint.objects.filter(step=2).update(
        deleted_at=timezone.now(), delete_asked_at=timezone.now(), delete_asked_by="ada", freed_bytes=1_200_000_000
    )
    text = text_of(page.get(f"/runs/{stopped.run.pk}/checkpoints/"))
    assert "just now</time> by ada, 1.2 GB freed" in text
    assert [r.checkpoint.step for r in page.get("/checkpoints/?show=deleted").context["rows"]] == [2]


def test_the_last_one_is_asked_for_explicitly(page: Client, stopped: Feed) -> None:
    Checkpoint.objects.exclude(step=5).update(deleted_at=timezone.now())
    last = at(stopped.run, 5)
    text = text_of(page.get(f"/runs/{stopped.run.pk}/checkpoints/doomed?checkpoint={last.pk}"))
    assert "The run can't be resumed any more" in text
    assert 'data-testid="even-last"' in text
    address, data = f"/runs/{stopped.run.pk}/checkpoints/delete", {"checkpoint": last.pk}
    assert "no complete checkpoint of the run is left without step 5" in said(page.post(address, data, follow=True))
    assert at(stopped.run, 5).usable
    page.post(address, data | {"even_last": "yes"})
    assert not at(stopped.run, 5).usable


def test_what_is_in_use_is_refused_with_the_reason(page: Client, world: World, stopped: Feed) -> None:
    run = stopped.run
    pinned, exported, resumed = at(run, 2), at(run, 4), at(run, 5)
    actions.pin_checkpoint(pinned, True, "ada")
    export = actions.export(run, world.user, exported)
    run.refresh_from_db()
    actions.resume(run, "ada", resumed)
    for row, why in (
        (pinned, "step 2 of attempt 1 is pinned"),
        (exported, f"step 4 of attempt 1 is held by export {export.pk}, which is queued"),
        (resumed, "attempt 2 goes on from step 5 of attempt 1"),
    ):
        answer = page.post(f"/runs/{run.pk}/checkpoints/delete", {"checkpoint": row.pk}, follow=True)
        assert why in said(answer)
        assert why in text_of(page.get(f"/runs/{run.pk}/checkpoints/doomed?checkpoint={row.pk}"))
    assert not Checkpoint.objects.exclude(delete_asked_at=None).exists()
    lifecycle.move_job(export, ExportState.FAILED, reason=Reason.DATA, text="x")
    found = doom.doom(run, [exported])
    assert (found.problems, found.losses) == ([], [f"What did not end well can't be tried again: export {export.pk}."])


def test_a_living_training_keeps_its_newest(world: World) -> None:
    feed = world.running()
    feed.started()
    two = feed.checkpoint(2)
    feed.checkpoint(4)
    torn = Checkpoint.objects.create(attempt=feed.run.attempt, step=6, nodes=2, world_size=2)
    for row in (at(feed.run, 4), torn):
        with pytest.raises(Refused, match="training goes on, and no complete one is newer"):
            actions.delete_checkpoints(feed.run, [row], "ada")
    actions.delete_checkpoints(feed.run, [two], "ada")
    assert not at(feed.run, 2).usable


def test_once_asked_to_go_nothing_uses_it(page: Client, world: World, stopped: Feed) -> None:
    run, last = stopped.run, at(stopped.run, 5)
    actions.delete_checkpoints(run, [last], "ada")
    assert actions.newest_checkpoint(run).step == 4
    for use in (lambda: actions.export(run, world.user, last), lambda: actions.resume(run, "ada", last)):
        with pytest.raises(Refused, match="step 5 is being deleted"):
            use()
    for act in (lambda: actions.pin_checkpoint(last, True, "ada"), lambda: actions.look_at_checkpoint(last)):
        with pytest.raises(Refused, match="step 5 is being deleted"):
            act()
    assert "Resume from step 4" in text_of(page.get(f"/runs/{run.pk}/part/actions"))


def test_a_stale_row_does_not_win_over_the_lock(world: World, stopped: Feed) -> None:
    """Who read the checkpoint before it was asked to go is refused all the same, and the other way round."""
    run, stale, other = stopped.run, at(stopped.run, 5), at(stopped.run, 4)
    actions.delete_checkpoints(run, [at(run, 5)], "ada")
    assert stale.usable
    with pytest.raises(Refused, match="being deleted"):
        actions.export(run, world.user, stale)
    actions.export(run, world.user, at(run, 4))
    with pytest.raises(Refused, match="held by export"):
        actions.delete_checkpoints(run, [other], "ada")


@pytest.mark.django_db(transaction=True)
def test_of_an_export_and_a_deletion_at_once_one_wins(world: World, stopped: Feed) -> None:
    run, both, errors = stopped.run, threading.Barrier(2), []

    def act(what: Callable[[], object]) -> None:
        try:
            both.wait()
            what()
        except Refused as refused:
            errors.append(refused)
        finally:
            connection.close()

    acts = (
        lambda: actions.export(run, world.user, at(run, 4)),
        lambda: actions.delete_checkpoints(run, [at(run, 4)], "ada"),
    )
    threads = [threading.Thread(target=act, args=(what,)) for what in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exported, doomed = Export.objects.count(), Checkpoint.objects.exclude(delete_asked_at=None).count()
    assert (exported + doomed, len(errors)) == (1, 1)
    assert "being deleted" in str(errors[0]) or "held by export" in str(errors[0])


def test_tidying_up_leaves_the_newest_complete_one(page: Client, world: World, stopped: Feed) -> None:
    run = stopped.run
    Checkpoint.objects.create(attempt=run.attempt, step=3, nodes=2, world_size=2)
    actions.pin_checkpoint(at(run, 2), True, "ada")
    assert [row.step for row in doom.superfluous(run)] == [3, 4]
    text = text_of(page.get(f"/runs/{run.pk}/checkpoints/"))
    assert "Tidy up (2)…" in text
    assert "Delete 2 checkpoints: 1 kB" in text_of(page.get(f"/runs/{run.pk}/checkpoints/doomed?which=superfluous"))
    actions.resume(run, "ada", at(run, 4))
    assert [row.step for row in doom.superfluous(run)] == [3]


def test_tidying_up_leaves_what_the_rule_values(world: World) -> None:
    """The best and every fourth of both attempts stay; what a second attempt left behind it goes."""
    rule = {"every_steps": 1, "keep": 3, "keep_best": 1, "best_metric": "loss", "keep_every": 4}
    feed = world.running(checkpoints=rule)
    losses = {1: 0.9, 2: 0.1, 3: 0.8, 4: 0.7, 5: 0.6, 6: 0.5}
    for step, loss in losses.items():
        known = {
            "metrics": {"loss": {"value": loss, "step": step}},
            "nodes": 2,
            "world_size": 2,
            "bytes": 500,
            "files": 2,
        }
        for rank in (0, 1):
            feed.write(f"train@{rank}", ("checkpoint", step, {"name": f"checkpoint-{step}", "node_rank": rank} | known))
    assert doom.superfluous(feed.run) == []  # training goes on
    feed.end(RunState.STOPPING)
    feed.end(RunState.STOPPED)
    feed.run.refresh_from_db()
    assert [row.step for row in doom.superfluous(feed.run)] == [1, 3, 5]
    actions.resume(feed.run, "ada", at(feed.run, 5))
    again = world.started(feed.run)
    assert [row.step for row in doom.superfluous(feed.run)] == [1, 3]
    again.checkpoint(7)
    feed.run.refresh_from_db()
    assert [(row.attempt.number, row.step) for row in doom.superfluous(feed.run)] == [(1, 1), (1, 3), (1, 6)]
