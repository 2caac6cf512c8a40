"""What really runs: whatever the ranks told, grouped and with units, and every metric's points on the page."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from training.spec.schedule import learning_rates
from webapp.runs.facts import Panel, panel, text

from .rows import HOSTILE, Feed, World

STARTED = {
    "world_size": 2, "nodes": 2, "total_steps": 12, "parameters": 1_000_000, "trainable": 25_000, "attention": "sdpa",
    "master_dtype": "float32", "compute_dtype": "bfloat16", "wrapped": {"LlamaDecoderLayer": 4},
    "peak_ram": [812_345_678, 790_123_456], "loading_seconds": 1.25, "resumed_from": None,
}  # fmt: skip


def told(world: World, **more: Any) -> Feed:
    feed = world.running()
    feed.write("train@0", ("started", None, STARTED | more))
    return feed


def shown(feed: Feed) -> dict[str, dict[str, str]]:
    found: Panel = panel(feed.run.attempt)
    return {name: {fact.label: fact.value for fact in facts} for name, facts in found.groups}


def test_facts_are_grouped_with_their_units(world: World) -> None:
    groups = shown(told(world))
    assert groups["Number formats"] == {"master weights": "float32", "compute": "bfloat16"}
    assert groups["Model"]["of these trained"] == "25,000 (2.5%)"
    assert groups["Model"]["wrapped"] == "LlamaDecoderLayer 4"
    assert groups["Ranks and loading"]["host memory at most"] == "812 MB, 790 MB"
    assert groups["Ranks and loading"]["loading took"] == "1.25 s"
    assert "resumed from step" not in groups["Ranks and loading"]


def test_a_field_that_nobody_knows_yet_is_shown_by_its_name(page: Client, world: World) -> None:
    feed = told(world, brand_new={"depth": [1, {"x": 2.5}], "on": True}, hostile=HOSTILE)
    assert shown(feed)["More"]["brand new"] == "depth 1, x 2.5, on yes"
    html = page.get(f"/runs/{feed.run.pk}/part/facts").content.decode()
    assert "&lt;img src=x" in html
    assert "<img src=x" not in html


def test_the_figures_of_many_ranks_are_told_by_least_and_most() -> None:
    assert text([5] * 15 + [9]) == "5 to 9 (16 ranks)"


def test_the_counts_of_the_data_and_what_a_resume_restored(page: Client, world: World) -> None:
    feed = told(world)
    rows = {
        "rows": 5000,
        "kept": 4900,
        "cut": 120,
        "trained_tokens": 512_345,
        "artefact": "ab" * 32,
        "test": {"rows": 7},
    }
    parts = {"weights": "restored", "optimizer": "resharded", "data_position": "fresh"}
    skipped = [{"name": "checkpoint-6", "node_rank": 1, "fault": "no manifest"}]
    feed.write("train@0", ("data", None, rows), ("resumed", 4, {"saved_on": 2, "parts": parts, "skipped": skipped}))
    groups = shown(feed)
    assert groups["Data"]["trained tokens"] == "512,345"
    assert groups["Data"]["artefact"] == "abababababab"
    assert groups["Data to evaluate on"] == {"rows": "7"}
    assert groups["Restored on resume"] == {
        "weights": "restored", "optimizer": "resharded", "data position": "fresh", "saved on": "2"
    }  # fmt: skip
    html = page.get(f"/runs/{feed.run.pk}/part/facts").content.decode()
    assert "passed over: checkpoint-6 on node 1: no manifest" in html


def test_an_open_page_asks_for_them_again(page: Client, world: World) -> None:
    feed = world.running()
    before = page.get(f"/runs/{feed.run.pk}/live", {"after": 0}).json()["cursor"]
    feed.write("train@0", ("data", None, {"rows": 1}))
    batch = page.get(f"/runs/{feed.run.pk}/live", {"after": before}).json()
    assert batch["changed"] == ["facts"]


def test_every_metric_over_steps_comes_with_the_planned_rate(page: Client, world: World) -> None:
    feed = told(world)
    metrics = {"loss": 1.0, "learning_rate": 1e-4, "mfu": 0.4, "data_seconds": 0.1, "never_heard_of": 3}
    feed.write("train@0", ("metrics", 1, metrics))
    sample = {"ram_used": 1, "ram_total": 2, "disk_free": 1, "disk_total": 2, "cpu": 0.5, "gpus": []}
    feed.write("node@0", ("sample", None, sample))
    found = json.loads(page.get(f"/runs/{feed.run.pk}/series.json?points=100").content)["series"]
    assert set(metrics) | {"planned/learning_rate", "node0/ram_used", "node0/ram_total"} == set(found)
    planned = learning_rates(feed.run.parsed_recipe(), 12)
    assert found["planned/learning_rate"]["points"] == [list(point) for point in planned]
