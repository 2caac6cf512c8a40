"""The list of runs."""

from __future__ import annotations

import math
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from webapp.runs.models import Run
from webapp.runs.states import RunState

from .rows import HOSTILE, World


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
    rows = [run.name for run, _ in page.get("/runs/").context["rows"]]
    assert rows == ["broken", "under way", "newest, a draft"]
    Run.objects.filter(pk=failed.run.pk).update(ended_at=timezone.now() - timedelta(days=30))
    rows = [run.name for run, _ in page.get("/runs/").context["rows"]]
    assert rows == ["under way", "newest, a draft", "broken"]
    assert running.run.pk > failed.run.pk


def test_a_run_with_a_lost_node_needs_someone(page: Client, world: World) -> None:
    feed = world.running("lost")
    world.running("well")
    feed.run.attempt.placements.filter(rank=1).update(unreachable_since=timezone.now())
    rows = [(run.name, run.rank) for run, _ in page.get("/runs/").context["rows"]]
    assert rows == [("lost", 0), ("well", 1)]


def test_it_filters_and_searches(page: Client, world: World) -> None:
    world.running("apple")
    draft = world.draft("pear")
    for query, names in (
        ("state=draft", ["pear"]),
        ("q=APP", ["apple"]),
        (f"q={draft.pk}", ["pear"]),
        ("q=ada&state=running", ["apple"]),
        ("state=failed", []),
    ):
        assert [run.name for run, _ in page.get(f"/runs/?{query}").context["rows"]] == names


def test_it_is_paged(page: Client, world: World) -> None:
    for number in range(27):
        world.draft(f"run {number}")
    first, second = page.get("/runs/"), page.get("/runs/?page=2")
    assert [len(answer.context["rows"]) for answer in (first, second)] == [25, 2]
    assert 'rel="next"' in first.content.decode()


def test_a_loss_that_is_not_finite_is_named(page: Client, world: World) -> None:
    feed = world.running("nan")
    feed.metrics(2.0, math.nan)
    (_, curve), *_ = page.get("/runs/").context["rows"]
    assert (curve.values, curve.last) == ([2.0, None], "NaN")


def test_names_are_shown_as_text(page: Client, world: World) -> None:
    world.draft(HOSTILE)
    text = page.get("/runs/").content.decode()
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_it_says_what_to_do_next(page: Client) -> None:
    assert "Make the first run" in page.get("/runs/").content.decode()
    assert "No run matches" in page.get("/runs/?q=nothing").content.decode()
