"""Checkpoints: their pages, what each is good for, pins, notes, and where they lie."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from training.spec.lint import Refused
from webapp.fleet.actions import drain
from webapp.fleet.models import Node
from webapp.runs import actions
from webapp.runs.live import batch
from webapp.runs.models import Checkpoint, CheckpointCopy, Event, Run
from webapp.runs.shelf import doom, moves
from webapp.runs.shelf.places import PRIVATE, SHARED, disk, places
from webapp.runs.shelf.rows import of_run
from webapp.runs.shelf.totals import Totals
from webapp.runs.states import RunState

from .rows import HOSTILE, Feed, World
from .shelf import at, said, text_of


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
    with django_assert_max_num_queries(26):
        page.get(f"/runs/{stopped.run.pk}/checkpoints/")
    with django_assert_max_num_queries(26):
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


def test_an_open_run_page_hears_of_it(world: World, stopped: Feed) -> None:
    stopped.run.refresh_from_db()
    before = stopped.run.journal
    actions.pin_checkpoint(at(stopped.run, 4), True, "ada")
    assert batch(stopped.run.pk, before)["changed"] == ["checkpoints", "actions", "history"]


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
    told = "brings its shards together from private disks, with their hashes: 500 B to alpha, 500 B to beta."
    assert f"A resume first {told}" in text_of(page.get(f"/runs/{stopped.run.pk}/"))
    actions.look_at_checkpoint(row)
    copies = row.copies.order_by("id")
    CheckpointCopy.objects.filter(pk=copies[0].pk).update(bytes=1000, parts=[0, 1])
    assert moves.foretold(row) == f"A resume first {told}".replace("500 B to alpha, ", "")
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


def test_a_plan_of_a_deleted_checkpoint_is_not_started(world: World, stopped: Feed) -> None:
    planned = actions.plan(stopped.run, world.user, at(stopped.run, 4))
    actions.delete_checkpoints(stopped.run, [at(stopped.run, 4)], "ada")
    with pytest.raises(Refused, match="being deleted"):
        actions.start(planned, "ada")
