"""Checkpoints: their pages, what each is good for, pins, notes, and a deletion that is shown before it is asked."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.lint import Refused
from webapp.fleet.actions import drain
from webapp.fleet.models import Node
from webapp.runs import actions, lifecycle
from webapp.runs.live import batch
from webapp.runs.models import Checkpoint, CheckpointCopy, Event, Export, Run
from webapp.runs.shelf import doom, moves
from webapp.runs.shelf.places import PRIVATE, SHARED, disk, places
from webapp.runs.shelf.room import rooms
from webapp.runs.shelf.rows import of_run
from webapp.runs.shelf.totals import Totals
from webapp.runs.states import ExportState, RunState

from .rows import HOSTILE, Feed, World


@pytest.fixture
def stopped(world: World) -> Feed:
    """A run that has stopped at step 5 of 12, with three checkpoints."""
    feed = world.running(HOSTILE)
    feed.started()
    feed.metrics(3.0, 2.5, 2.0, 1.5, 1.25)
    feed.write("train@0", ("evaluation", 4, {"loss": 1.75}))
    for step in (2, 4, 5):
        feed.checkpoint(step)
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    return feed


def at(run: Run, step: int) -> Checkpoint:
    return Checkpoint.objects.select_related("attempt__run").get(attempt__run=run, step=step)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(html.unescape(answer.content.decode()).split())


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_it_works(page: Client, stopped: Feed) -> None:
    for address in (f"/runs/{stopped.run.pk}/checkpoints/", "/checkpoints/", f"/checkpoints/?run={stopped.run.pk}"):
        answer = page.get(address)
        assert "<img src=x" not in answer.content.decode()
        text = text_of(answer)
        assert text.count('data-testid="shelf-row"') + text.count('data-testid="checkpoint"') == 3
        assert "1.75" in text
        assert "✓ resume" in text
        assert "alpha" in text
    assert 'data-testid="by-node"' in text


def test_the_totals_add_up_what_lies_there(world: World, stopped: Feed) -> None:
    other = world.running("other")
    other.checkpoint(1)
    actions.delete_checkpoints(stopped.run, [at(stopped.run, 2)], "ada")
    CheckpointCopy.objects.filter(node__name="alpha").update(deleted_at=timezone.now())
    taken = Totals.now()
    assert [(t.name, t.bytes, t.count) for t in taken.nodes] == [("beta", 2000, 4), ("alpha", 1500, 3)]
    assert [(t.key, t.bytes, t.count) for t in taken.runs] == [(stopped.run.pk, 2500, 3), (other.run.pk, 1000, 1)]


def test_what_one_is_good_for(world: World, stopped: Feed) -> None:
    feed = stopped
    Run.objects.update(total_steps=5)
    feed.run.refresh_from_db()
    torn = Checkpoint.objects.create(attempt=feed.run.attempt, step=3, nodes=2, world_size=4)
    last, four, three, two = of_run(feed.run)
    assert [(u.name, u.possible, u.why) for u in last.uses] == [
        ("resume", False, "it is the run's last step"),
        ("export", True, ""),
    ]
    assert [(u.name, u.possible, u.why) for u in two.uses] == [
        ("resume", True, "on 2 ranks, as it was saved"),
        ("export", True, ""),
    ]
    assert (four.loss, four.eval_loss, two.eval_loss) == (1.5, 1.75, None)
    assert [use.possible for use in three.uses] == [False, False]
    assert three.uses[0].why == "incomplete: 0 of 2 nodes' manifests"
    Checkpoint.objects.filter(pk=torn.pk).delete()
    Checkpoint.objects.update(world_size=4)
    assert of_run(feed.run)[2].uses[0].why.startswith("on 2 ranks in place of 4: it is resharded")
    drain(world.nodes[1], "ada")
    assert of_run(feed.run)[2].uses[0].possible, "a drained node is still read from"
    Node.objects.filter(name="beta").update(removed_at=timezone.now())
    assert of_run(feed.run)[2].uses[0] == of_run(feed.run)[2].can["resume"]
    assert of_run(feed.run)[2].uses[0].why == "not reached any more: beta"


def test_after_the_end_is_said_what_stands_and_the_shelf_is_never_called_new(page: Client, stopped: Feed) -> None:
    address = f"/runs/{stopped.run.pk}/checkpoints/"
    actions.delete_checkpoints(stopped.run, [at(stopped.run, 2)], "ada")
    text = text_of(page.get(address))
    assert "held while it trained; what stands now, 4, 5, stays until it is deleted." in text
    assert "these stay" not in text
    Run.objects.update(state=RunState.SUCCEEDED)
    assert "✕ resume: the run has succeeded: clone it to train on" in text_of(page.get(address))
    Checkpoint.objects.update(deleted_at=timezone.now())
    text = text_of(page.get("/checkpoints/"))
    assert "No usable checkpoint is left" in text
    assert "No checkpoint yet" not in text
    assert "Nothing of it stands any more." in text_of(page.get(address))


def test_that_the_newest_goes_while_an_older_one_is_left_is_said(stopped: Feed) -> None:
    said_of = {step: doom.doom(stopped.run, [at(stopped.run, step)]).losses for step in (4, 5)}
    told = "The run's newest complete checkpoint goes; the newest that is left is of step 4."
    assert said_of == {4: [], 5: [told]}


def test_the_pages_cost_the_same_for_many(page: Client, stopped: Feed, django_assert_max_num_queries: Any) -> None:
    for step in range(6, 12):
        stopped.checkpoint(step)
    with django_assert_max_num_queries(24):
        page.get(f"/runs/{stopped.run.pk}/checkpoints/")
    with django_assert_max_num_queries(24):
        page.get("/checkpoints/")


def test_it_is_pinned_and_honest_about_nodes(page: Client, stopped: Feed) -> None:
    row = at(stopped.run, 4)
    page.post(f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/pin", {"pinned": "yes"})
    row.refresh_from_db()
    assert (row.pinned, row.pinned_by, row.settled) == (True, "ada", False)
    address = f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/row"
    assert "⚑ pinned (on 0 of 2 nodes yet)" in text_of(page.get(address))
    CheckpointCopy.objects.filter(node__name="alpha").update(pinned=True)
    CheckpointCopy.objects.filter(node__name="beta").update(problem="beta: no connection.")
    text = text_of(page.get(address))
    assert "⚑ pinned (on 1 of 2 nodes yet)" in text
    assert 'beta: no connection. <span class="text-secondary">Tried again by itself.' in text
    assert 'hx-trigger="every 2s"' in text
    CheckpointCopy.objects.update(pinned=True, problem="")
    Checkpoint.objects.update(settled=True)
    text = text_of(page.get(address))
    assert "⚑ pinned</span>" in text
    assert "every 2s" not in text
    assert "step 4, attempt 1: pinned" in text_of(page.get(f"/runs/{stopped.run.pk}/part/history"))
    page.post(f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/pin", {"pinned": "no"})
    assert "still pinned on 2 of 2 nodes" in text_of(page.get(address))


def test_a_pin_asked_twice_is_one_event(page: Client, stopped: Feed) -> None:
    row = at(stopped.run, 4)
    for _ in range(2):
        page.post(f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/pin", {"pinned": "yes"})
    assert Event.objects.filter(kind="shelf").count() == 1
    assert row.copies.count() == 2


def test_it_is_noted(page: Client, stopped: Feed) -> None:
    row = at(stopped.run, 4)
    address = f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/note"
    page.post(address, {"notes": f"good tone\r\n{HOSTILE}"})
    row.refresh_from_db()
    assert row.notes == f"good tone\n{HOSTILE}"
    shown = page.get(f"/runs/{stopped.run.pk}/checkpoints/").content.decode()
    assert "good tone<br>&lt;img" in shown
    assert [r.checkpoint.step for r in page.get("/checkpoints/?q=good tone").context["rows"]] == [4]
    assert "At most 4000 fit" in said(page.post(address, {"notes": "x" * 4001}, follow=True))
    assert "control characters" in said(page.post(address, {"notes": "a\x07"}, follow=True))
    row.refresh_from_db()
    assert row.notes.startswith("good tone")


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


def test_an_open_run_page_hears_of_it(world: World, stopped: Feed) -> None:
    stopped.run.refresh_from_db()
    before = stopped.run.journal
    actions.pin_checkpoint(at(stopped.run, 4), True, "ada")
    assert batch(stopped.run.pk, before)["changed"] == ["checkpoints", "actions", "history"]


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


def test_where_it_was_brought_is_known(world: World, stopped: Feed) -> None:
    run, row = stopped.run, at(stopped.run, 5)
    assert [(p.name, p.brought) for p in places(row)] == [("alpha", False), ("beta", False)]
    actions.resume(run, "ada", row)
    attempt = run.attempts.get(number=2)
    world.nodes[0].scratch = "/other"
    actions.place(attempt, world.nodes)
    assert [(p.name, p.scratch, p.brought, p.written) for p in places(row)] == [
        ("alpha", "/scratch/alpha", False, 500),
        ("beta", "/scratch/beta", True, 500),
        ("alpha", "/other", True, 0),
    ]
    assert doom.doom(run, [row]).brought == ["alpha", "beta"]


def test_what_a_resume_brings_is_told_beforehand(page: Client, stopped: Feed) -> None:
    row = at(stopped.run, 5)
    told = "its shards are brought together first, with their hashes: 500 B to alpha, 500 B to beta."
    assert f"To resume: On private disks {told}" in text_of(page.get(f"/runs/{stopped.run.pk}/"))
    actions.look_at_checkpoint(row)
    copies = row.copies.order_by("id")
    CheckpointCopy.objects.filter(pk=copies[0].pk).update(bytes=1000, parts=[0, 1])
    assert moves.foretold(row) == f"On private disks {told}".replace("500 B to alpha, ", "")
    CheckpointCopy.objects.filter(pk=copies[1].pk).update(bytes=1000, parts=[0, 1])
    assert moves.foretold(row) == "", "one disk, or each has the other's part by now"


@pytest.mark.parametrize(("parts", "known", "sizes"), [(([0, 1], [0, 1]), SHARED, [500, 500]),
                                                       (([0], [1]), PRIVATE, [700, 700]),
                                                       (([0], None), "", [700, 700])])  # fmt: skip
def test_a_disk_that_both_nodes_see_is_counted_once(stopped: Feed, parts: Any, known: str, sizes: list[int]) -> None:
    row = at(stopped.run, 5)
    actions.look_at_checkpoint(row)
    for copy, told in zip(row.copies.order_by("id"), parts, strict=True):
        CheckpointCopy.objects.filter(pk=copy.pk).update(bytes=700, parts=told)
    found = places(row)
    assert (disk(found, 2), [place.bytes for place in found]) == (known, sizes)
    assert PurePosixPath(found[0].scratch).name == "alpha"


@pytest.mark.parametrize("query", ["", "checkpoint=x", "checkpoint=" + "9" * 40, "checkpoint=999"])
def test_nothing_chosen_is_said(page: Client, stopped: Feed, query: str) -> None:
    text = text_of(page.get(f"/runs/{stopped.run.pk}/checkpoints/doomed?{query}"))
    assert "Tick those that shall go" in text


def test_another_run_s_is_not_touched(page: Client, world: World, stopped: Feed) -> None:
    other, row = world.draft("other"), at(stopped.run, 2)
    with pytest.raises(Refused, match="belongs to another run"):
        actions.delete_checkpoints(other, [row], "ada")
    for act in ("pin", "note", "look"):
        assert page.post(f"/runs/{other.pk}/checkpoints/{row.pk}/{act}").status_code == 404
        assert page.get(f"/runs/{stopped.run.pk}/checkpoints/{row.pk}/{act}").status_code == 405
    assert page.get(f"/runs/{stopped.run.pk}/checkpoints/delete").status_code == 405


def test_empty_pages_say_what_to_do_next(page: Client, world: World) -> None:
    run = world.draft()
    assert "One is written every" in text_of(page.get(f"/runs/{run.pk}/checkpoints/"))
    assert "See the runs" in text_of(page.get("/checkpoints/"))
    assert "No checkpoint matches" in text_of(page.get("/checkpoints/?q=zzz"))


def test_what_stays_and_what_goes_is_seen_beforehand(page: Client, world: World) -> None:
    """By the very rule that training deletes by; 12 steps, saved every 2, the newest 2 and the best one kept."""
    rule = {"every_steps": 2, "keep": 2, "keep_best": 1, "best_metric": "loss"}
    feed = world.running(checkpoints=rule)
    feed.started()
    feed.metrics(*[3.0] * 6)
    for step, loss in ((2, 1.5), (4, 2.0), (6, 2.5)):
        for rank in range(2):
            part = {"name": f"checkpoint-{step}", "node_rank": rank, "bytes": 500, "files": 2, "nodes": 2}
            known = {"metrics": {"loss": {"value": loss, "step": step}}, "world_size": 2}
            feed.write(f"train@{rank}", ("checkpoint", step, part | known))
    assert [(row.checkpoint.step, row.fate) for row in of_run(feed.run)] == [
        (6, "stays: last complete one; newest 2"),
        (4, "goes with the save of step 8: older than the newest 2; not among the best 1 by loss (2)"),
        (2, "stays: best 1 by loss (1.5)"),
    ]
    four = at(feed.run, 4)
    actions.pin_checkpoint(four, True, "ada")
    export = actions.export(feed.run, world.user, four)
    text = text_of(page.get(f"/runs/{feed.run.pk}/checkpoints/{four.pk}/row"))
    assert f"stays: pinned; held by export {export.pk}; newest 2" in text
    why = {"name": "checkpoint-2", "node_rank": 0, "why": "older than the newest 2"}
    feed.write("train@0", ("checkpoint_deleted", 2, why))
    assert "by the rule: older than the newest 2" in text_of(page.get(f"/runs/{feed.run.pk}/part/checkpoints"))
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert {row.fate for row in of_run(feed.run) if not row.checkpoint.deleted_at} == {""}


def test_a_plan_of_a_deleted_checkpoint_is_not_started(world: World, stopped: Feed) -> None:
    planned = actions.plan(stopped.run, world.user, at(stopped.run, 4))
    actions.delete_checkpoints(stopped.run, [at(stopped.run, 4)], "ada")
    with pytest.raises(Refused, match="being deleted"):
        actions.start(planned, "ada")


def test_a_disk_that_will_be_full_is_told_with_the_step(page: Client, world: World) -> None:
    feed = world.running(checkpoints={"every_steps": 2, "keep": 3})
    feed.started()
    address = f"/runs/{feed.run.pk}/part/checkpoints"
    assert 'data-testid="room"' not in text_of(page.get(address))  # nobody has seen the disk, or the model
    for rank, free in enumerate((10_000, 900)):
        feed.write(f"node@{rank}", ("sample", None, {"disk_free": free, "disk_total": 20_000}))
    feed.metrics(3.0, 2.5)
    feed.checkpoint(2)
    own = rooms(feed.run)
    assert [(r.node, r.outlook.fits, r.outlook.full_at) for r in own] == [("alpha", True, 0), ("beta", False, 6)]
    text = text_of(page.get(address))
    assert "⚠ beta: full after step 4: at most 4 at once" in text
    assert "With 12 steps these stay: 8, 10, 12 (newest 3)" in text
    alone = {"disk_total": 20_000, "disk_free": 10_000}
    feed.run.attempt.placements.update(facts={"check": alone})
    (both,) = rooms(feed.run)  # at the launch they saw one disk: it has to hold what both write
    assert (both.node, both.outlook.need) == ("alpha and beta, which seem to see one disk", 2 * own[0].outlook.need)
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert rooms(feed.run) == []


def test_a_new_run_s_room_is_seen_before_it_is_made(page: Client, world: World) -> None:
    """From the model's shape, as a node told at an earlier launch, and from the disks of the nodes' checks."""
    opened = page.get("/runs/new/").context["form"]
    form = {"name": "n", "preset": opened.preset, "model": world.model.pk, "dataset": world.version.pk}
    form |= {"cluster": world.cluster.pk, "editor": "form", "yaml": opened.text, **opened.fields}
    assert "shows once a node has looked at the model" in text_of(page.post("/runs/new/panel", form))
    shape = {"parameters": 5_000_000, "tensors": 40, "tied": 0, "layers": []}
    feed = world.running()
    feed.run.attempt.placements.update(facts={"check": {"model_shape": shape}})
    for node, free in zip(world.nodes, (10**9, 10**7), strict=True):
        node.facts, node.checked_at = {"disk_free": free, "disk_total": 10**10}, timezone.now()
        node.save()
    text = text_of(page.post("/runs/new/panel", form))
    assert "⚠ beta: no room for the first one: at most" in text
    assert "its size is an estimate (its disk was looked at" in text
    assert rooms(feed.run) == []  # no sample has told its disks
    feed.write("node@0", ("sample", None, {"disk_free": 10**9}))
    (alpha,) = rooms(feed.run)
    assert (alpha.estimated, alpha.outlook.fits) == (True, True)
    assert 30_000_000 < alpha.outlook.need // alpha.outlook.most < 31_000_000  # half of 12 bytes a parameter
    shared = {"model_shape": shape, "disk_free": 10**9, "disk_total": 10**10}
    feed.run.attempt.placements.update(facts={"check": shared})
    (both,) = rooms(feed.run)
    assert 60_000_000 < both.outlook.need // both.outlook.most < 62_000_000  # all of it, on the disk of both
