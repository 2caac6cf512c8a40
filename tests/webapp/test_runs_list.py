"""The list of runs."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from training.spec.faults import Reason
from webapp.runs import actions
from webapp.runs.finding import Wanted, in_order, matching
from webapp.runs.listing import choices
from webapp.runs.models import Run
from webapp.runs.states import RunState

from .rows import HOSTILE, World


def names(answer: Any) -> list[str]:
    return [row.run.name for row in answer.context["rows"]]


def test_it_works(page: Client, world: World) -> None:
    feed = world.running("first look")
    feed.metrics(2.31, 1.94)
    text = page.get("/runs/").content.decode()
    assert "first look" in text
    assert "1.94" in text
    assert 'aria-label="loss from 2.31 to 1.94"' in text


def test_those_that_need_someone_are_on_top(page: Client, world: World) -> None:
    failed = world.running("broken")
    failed.end(RunState.FAILED, reason=Reason.RANK_FAILED)
    running = world.running("under way")
    world.draft("newest, a draft")
    rows = names(page.get("/runs/"))
    assert rows == ["broken", "under way", "newest, a draft"]
    Run.objects.filter(pk=failed.run.pk).update(ended_at=timezone.now() - timedelta(days=30))
    rows = names(page.get("/runs/"))
    assert rows == ["under way", "newest, a draft", "broken"]
    assert running.run.pk > failed.run.pk


def test_a_run_with_a_lost_node_needs_someone(page: Client, world: World) -> None:
    feed = world.running("lost")
    world.running("well")
    feed.run.attempt.placements.filter(rank=1).update(unreachable_since=timezone.now())
    rows = [(row.run.name, row.rank) for row in page.get("/runs/").context["rows"]]
    assert rows == [("lost", 0), ("well", 1)]


def test_sqlite_reads_lists_out_of_indexes_alone(world: World) -> None:
    asked = ((Wanted(), "loss"), (Wanted(owner="ada"), "made"), (Wanted(dataset="chat"), ""))
    plans = [in_order(matching(wanted), sort).values_list("pk").explain() for wanted, sort in asked]
    if connection.vendor == "sqlite":
        assert "COVERING INDEX sketch_by_loss" in plans[0]
        assert all("COVERING INDEX run_listed" in plan for plan in plans)


def test_it_filters_and_searches(page: Client, world: World) -> None:
    world.running("apple")
    draft = world.draft("pear")
    assert not choices()["tags"]
    actions.set_tags(draft, ["Long  Context", "a"])
    for query, wanted in (
        ("state=draft", ["pear"]),
        ("q=APP", ["apple"]),
        (f"q={draft.pk}", ["pear"]),
        ("q=ada&state=running", ["apple"]),
        ("state=failed", []),
        ("tag=Long++context", ["pear"]),
        ("owner=ada&model=tiny&dataset=chat&state=running", ["apple"]),
        ("owner=nobody", []),
        ("q=%00", []),
    ):
        assert names(page.get(f"/runs/?{query}")) == wanted
    assert choices()["tags"] == ["a", "long context"]
    assert 'href="?&amp;tag=long%20context"' in page.get("/runs/").content.decode()
    assert 'href="?sort=name&amp;tag=long%20context"' in page.get("/runs/?sort=name&page=9&tag=a").content.decode()


def test_it_is_paged(page: Client, world: World) -> None:
    for number in range(27):
        world.draft(f"run {number}")
    first, second = page.get("/runs/"), page.get("/runs/?page=2")
    assert [len(answer.context["rows"]) for answer in (first, second)] == [25, 2]
    assert 'rel="next"' in first.content.decode()


def test_a_loss_that_is_not_finite_is_named(page: Client, world: World) -> None:
    feed = world.running("nan")
    feed.metrics(2.0, math.nan)
    curve = page.get("/runs/").context["rows"][0].curve
    assert (curve.values, curve.last) == ([2.0, None], "NaN")


def test_sorting_survives_what_is_not_finite(page: Client, world: World) -> None:
    for name, *losses in (("high", 3.0), ("nan", 2.0, math.nan), ("low", 1.0), ("inf", math.inf)):
        world.running(name).metrics(*losses)
    world.draft("none")
    assert names(page.get("/runs/?sort=loss")) == ["low", "high", "inf", "nan", "none"]
    assert names(page.get("/runs/?sort=-loss")) == ["high", "low", "inf", "nan", "none"]
    text = page.get("/runs/?sort=-loss").content.decode()
    assert 'aria-sort="descending"' in text
    assert "Infinity" in text
    for sort in ("number", "-name", "step", "made", "-ended", "nonsense"):
        assert len(names(page.get(f"/runs/?sort={sort}"))) == 5


def test_it_asks_as_much_for_many_as_for_few(page: Client, world: World, django_assert_num_queries: Any) -> None:
    """However many rows and however long their series are."""
    feeds = [world.running(f"run {number}") for number in range(3)]
    with CaptureQueriesContext(connection) as few:
        page.get("/runs/")
    for feed in feeds:
        feed.metrics(*range(1, 200))
        actions.set_tags(feed.run, ["one", "two"])
    world.draft()
    with django_assert_num_queries(len(few)):
        page.get("/runs/")


def test_rows_come_anew_alone(page: Client, world: World) -> None:
    world.draft("pear")
    text = page.get("/runs/?q=pear", headers={"HX-Request": "true"}).content.decode()
    assert text.startswith("<tbody")
    assert 'hx-get="/runs/?q=pear"' in text


def test_several_are_archived_and_each_outcome_is_told(page: Client, world: World) -> None:
    ended, running = world.running("ended"), world.running("running").run
    ended.end(RunState.FAILED, reason=Reason.RANK_FAILED)
    asked = {"run": [ended.run.pk, running.pk, 999], "act": "archive", "back": "sort=name&x=%0d%0ay"}
    answer = page.post("/runs/many", asked, follow=True)
    assert answer.redirect_chain == [("/runs/?sort=name&x=%0D%0Ay", 302)]
    told = [str(message) for message in answer.context["messages"]]
    assert told[0] == f"Archived: run #{ended.run.pk}."
    assert told[1].startswith(f"Not run #{running.pk}: archived: the run is running.")
    assert told[2].startswith("Not run #999: ")
    assert names(answer) == ["running"]
    assert names(page.get("/runs/?archived=only")) == ["ended"]
    assert names(page.get("/runs/?archived=all&sort=number")) == ["ended", "running"]
    page.post("/runs/many", {"run": [ended.run.pk], "act": "unarchive"})
    assert len(names(page.get("/runs/"))) == 2


def test_several_are_tagged_and_stopped(page: Client, world: World) -> None:
    first, second = world.running("first").run, world.draft("second")
    chosen = {"run": [first.pk, second.pk]}
    page.post("/runs/many", {**chosen, "act": "tag", "tags": "Sweep, lr  1e-4,"})
    assert [tag.name for tag in second.tags.all()] == ["lr 1e-4", "sweep"]
    answer = page.post("/runs/many", {**chosen, "act": "tag", "tags": "x" * 41}, follow=True)
    assert "At most 40 fit" in str(list(answer.context["messages"])[-1])
    page.post("/runs/many", {**chosen, "act": "stop"})
    first.refresh_from_db()
    assert first.state == RunState.STOPPING
    for wrong, why in (({"act": "stop"}, "none is chosen"), ({**chosen, "act": "burn"}, "'burn' is none")):
        answer = page.post("/runs/many", wrong, follow=True)
        assert why in str(list(answer.context["messages"])[-1])
    second.refresh_from_db()
    assert second.state == RunState.DRAFT


def test_names_are_shown_as_text(page: Client, world: World) -> None:
    world.draft(HOSTILE)
    text = page.get("/runs/").content.decode()
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_it_says_what_to_do_next(page: Client) -> None:
    assert "Make the first run" in page.get("/runs/").content.decode()
    assert "No run matches" in page.get("/runs/?q=nothing").content.decode()
