"""Runs beside each other."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from django.test import Client

from webapp.runs import actions
from webapp.runs.comparing.chosen import MOST
from webapp.runs.comparing.curves import at
from webapp.runs.comparing.finals import marked

from .rows import HOSTILE, Feed, World


@pytest.fixture
def pair(world: World) -> tuple[Feed, Feed]:
    first, second = world.running(HOSTILE), world.running("second", optimisation={"max_steps": 5})
    lines = [("metrics", step, {"loss": 3.0 - step, "num_tokens": 100.0 * step}) for step in (1, 2, 4)]
    first.write("train@0", *lines)
    second.write("train@0", ("metrics", 1, {"loss": 2.5}), ("metrics", 2, {"loss": math.nan}))
    return first, second


def address(runs: tuple[Feed, ...], more: str = "") -> str:
    return "&".join(f"run={feed.run.pk}" for feed in runs) + more


def test_it_works(page: Client, pair: tuple[Feed, Feed]) -> None:
    answer = page.get(f"/runs/compare?{address(pair, '&metric=loss&x=tokens')}")
    text, seen = answer.content.decode(), answer.context
    assert "<img src=x" not in text
    assert (seen["metrics"], seen["metric"], seen["x"]) == (["loss"], "loss", "tokens")
    losses = next(final for final in seen["finals"] if final.name == "loss")
    assert losses.values == [(-1.0, False), ("NaN", False)]
    recipe = next(section for section in seen["sections"] if section.title == "Recipe")
    assert recipe.rows == [("optimisation.max_steps", [12, 5])]
    assert recipe.same > 20


def test_curves_along_steps_and_tokens(page: Client, pair: tuple[Feed, Feed]) -> None:
    first, second = (str(feed.run.pk) for feed in pair)

    def curves(more: str) -> Any:
        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        raw = page.get(f"/runs/compare/series.json?{address(pair, more)}").content
        return json.loads(raw, parse_constant=refuse)["curves"]

    assert curves("&name=loss") == {first: [[1, 2.0], [2, 1.0], [4, -1.0]], second: [[1, 2.5], [2, "NaN"]]}
    assert curves("&name=loss&x=tokens") == {first: [[100, 2.0], [200, 1.0], [400, -1.0]], second: None}
    assert curves("&name=loss&x=time") == {first: [[0, 2.0], [1, 1.0], [2, -1.0]], second: [[0, 2.5], [1, "NaN"]]}
    text = page.get(f"/runs/compare/series.csv?{address(pair, '&name=loss')}").content.decode()
    assert text.splitlines()[:2] == ["run,x,value", f"{first},1,2.0"]
    assert f"{second},2,NaN" in text
    assert curves("&name=nothing%00") == {first: [], second: []}


def test_x_between_two_that_are_known() -> None:
    known = [(10.0, 100.0), (20.0, 300.0)]
    assert at(known, [5, 10, 15, 20, 25]) == [100, 100, 200, 300, 300]


def test_the_best_is_marked_where_it_is_known_which_way() -> None:
    assert marked("eval/loss", [2.0, 1.0, "NaN", None]) == [(2.0, False), (1.0, True), ("NaN", False), (None, False)]
    assert marked("mean_token_accuracy", [0.5, 0.75]) == [(0.5, False), (0.75, True)]
    assert not any(best for _, best in marked("grad_norm", [1.0, 2.0]) + marked("loss", [1.0, "NaN"]))


def test_more_than_can_be_told_apart_are_refused(page: Client, world: World) -> None:
    many = "&".join(f"run={number}" for number in range(1, MOST + 2))
    answer = page.get(f"/runs/compare?{many}")
    assert answer.status_code == 422
    assert "21 are asked for, and at most 20" in answer.content.decode()
    assert page.get(f"/runs/compare/series.json?{many}").status_code == 400
    assert page.get("/runs/compare/series.json?x=age").status_code == 400


def test_one_that_is_none_is_named_and_the_others_shown(page: Client, world: World) -> None:
    run = world.draft()
    text = page.get(f"/runs/compare?run={run.pk}&run=999&run=x&run={run.pk}").content.decode()
    assert "There is no run 999, x" in text
    assert "Compare 1 run<" in text
    assert "No run is chosen" in page.get("/runs/compare").content.decode()


def test_the_list_leads_there(page: Client, world: World) -> None:
    first, second = world.draft(), actions.clone(world.draft("source"), world.user)
    answer = page.post("/runs/many", {"run": [second.pk, first.pk], "act": "compare"})
    assert answer.headers["Location"] == f"/runs/compare?run={second.pk}&run={first.pk}"
    assert (
        f"/runs/compare?run={second.cloned_from_id}&amp;run={second.pk}"
        in page.get(f"/runs/{second.pk}/").content.decode()
    )
