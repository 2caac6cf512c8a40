"""POST /runs."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from webapp.datasets.ingest import take
from webapp.datasets.models import Version
from webapp.runs.models import Attempt, IdempotencyKey, Run

from .conftest import Caller, World, refused, strictly


def test_it_works(call: Caller, world: World) -> None:
    answer = call.post("/runs", world.body(recipe={"optimisation": {"max_steps": 7}}))
    body = strictly(answer)
    assert answer.status_code == 201
    assert (body["state"], body["total_steps"], body["owner"]) == ("queued", 7, "ada")
    run = Run.objects.get(pk=body["id"])
    assert body["url"] == f"http://testserver{run.get_absolute_url()}"
    assert run.recipe["optimisation"]["max_steps"] == 7
    assert [move["new"] for move in body["history"]] == ["queued"]
    assert run.attempts.count() == 1


def test_it_stays_a_draft_without_launch(call: Caller, world: World) -> None:
    body = strictly(call.post("/runs", world.body(launch=False)))
    assert body["state"] == "draft"
    assert not Attempt.objects.exists()


def test_names_and_ids_do_both(call: Caller, world: World) -> None:
    ids = {"model": world.model.pk, "dataset": world.version.dataset_id, "cluster": world.cluster.pk}
    assert call.post("/runs", world.body(**ids)).status_code == 201


def test_a_data_set_is_its_newest_version_unless_one_is_named(call: Caller, world: World) -> None:
    Version.objects.create(dataset=world.version.dataset, number=2, digest="1" * 64, rows=3, bytes=9)
    assert strictly(call.post("/runs", world.body()))["dataset_version"] == 2
    assert strictly(call.post("/runs", world.body(dataset="chat@1")))["dataset_version"] == 1
    refused(call.post("/runs", world.body(dataset="chat@3")), 422, "dataset")


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"name": " "}, "name", "empty"),
        ({"name": "x" * 201}, "name", "201"),
        ({"preset": "none"}, "preset", "no preset"),
        ({"model": "other"}, "model", "none called"),
        ({"model": 10**40}, "model", "none called"),
        ({"cluster": 999}, "cluster", "none called"),
        ({"dataset": "other"}, "dataset", "none called"),
        ({"recipe": {"optimisation": {"max_step": 3}}}, "optimisation.max_step", "unknown field"),
        ({"recipe": {"optimisation": {"learning_rate": 7}}}, "optimisation.learning_rate", "less than or equal"),
        ({"recipe": {"optimisation": 3}}, "optimisation", "dictionary"),
        ({"recipe": {"data": {"format": "text"}}}, "dataset", "messages"),
        ({"recipe": {"fsdp": {"version": 1}}}, "fsdp.version", "GPU"),
        ({"recipe": 3}, "recipe", "should be an object"),
        ({"extra": 1}, "extra", "unknown field"),
        ({"launch": "perhaps"}, "launch", "true or false"),
    ],
)
def test_it_refuses(call: Caller, world: World, changes: dict[str, Any], field: str, reason: str) -> None:
    assert reason in refused(call.post("/runs", world.body(**changes)), 422, field)
    assert not Run.objects.exists()
    assert not Attempt.objects.exists()


def test_it_says_what_is_missing(call: Caller, world: World) -> None:
    assert refused(call.post("/runs", {}), 422, "preset") == "it is missing"


@pytest.mark.parametrize(
    "raw",
    ["", "{", "[]", '"x"', "null", '{"a": NaN}', '{"name": "\\u0000"}', '{"name": "\\ud800"}', "[" * 90_000, b"\xff"],
)
def test_a_body_that_is_no_object_of_strict_json(call: Caller, world: World, raw: str | bytes) -> None:
    answer = call.post("/runs", raw)
    assert answer.status_code in (400, 422)
    assert set(strictly(answer)) == {"error", "problems"}


@pytest.mark.parametrize(
    ("raw", "field", "said"),
    [
        ('{"a": NaN}', "body", "NaN is no JSON number"),
        ('{"recipe": {"seed": 1, "seed": 2}}', "body", 'the key "seed" is there twice'),
        ('{"name": ', "body", "line 1 column 10"),
        ('{"recipe": {"x": "\\u0000"}}', "body.recipe.x", "NUL"),
        ("[" * 90_000, "body", "nested too deeply"),
    ],
)
def test_a_body_that_can_not_be_read_says_where_and_why(
    call: Caller, world: World, raw: str, field: str, said: str
) -> None:
    assert said in refused(call.post("/runs", raw), 400, field)


def test_a_switch_is_no_number(call: Caller, world: World) -> None:
    body = world.body(recipe={"optimisation": {"learning_rate": True, "max_steps": False}})
    assert "a number" in refused(call.post("/runs", body), 422, "optimisation.learning_rate")
    assert "a number" in refused(call.post("/runs", body), 422, "optimisation.max_steps")


def test_a_text_data_set_wants_its_column_named(call: Caller, world: World, settings: Any, tmp_path: Path) -> None:
    settings.DATASETS_DIR = tmp_path
    version = take("texts", io.BytesIO(b'{"text": "a"}\n')).version
    order = world.body(dataset="texts", recipe={"data": {"format": "text"}})
    assert "in 'text', not in 'content'" in refused(call.post("/runs", order), 422, "data.text_field")
    order["recipe"]["data"]["text_field"] = "text"
    assert call.post("/runs", order).status_code == 201
    (version.folder / "train.jsonl").unlink()
    assert "can't be read" in refused(call.post("/runs", order), 422, "dataset")


def test_all_that_is_wrong_is_said_at_once(call: Caller, world: World) -> None:
    answer = call.post("/runs", world.body(recipe={"optimisation": {"max_steps": 0, "seed": -1}}))
    assert {p["field"] for p in strictly(answer)["problems"]} == {"optimisation.max_steps", "optimisation.seed"}


def test_hostile_names_are_only_text(call: Caller, world: World) -> None:
    name = "$(touch /tmp/pwned);../../x <img src=x onerror=alert(1)>"
    assert strictly(call.post("/runs", world.body(name=name)))["name"] == name


def test_the_same_key_and_body_is_the_same_run(call: Caller, world: World) -> None:
    first = call.post("/runs", world.body(), Idempotency_Key="k-1")
    again = call.post("/runs", world.body(), Idempotency_Key="k-1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert strictly(first) == strictly(again)
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict(call: Caller, world: World) -> None:
    call.post("/runs", world.body(), Idempotency_Key="k-1")
    assert "another request" in refused(
        call.post("/runs", world.body(name="b"), Idempotency_Key="k-1"), 409, "Idempotency-Key"
    )
    assert Run.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(call: Caller, world: World) -> None:
    refused(call.post("/runs", world.body(preset="none"), Idempotency_Key="k-1"), 422, "preset")
    assert not IdempotencyKey.objects.exists()
    assert call.post("/runs", world.body(), Idempotency_Key="k-1").status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_that_is_none(call: Caller, world: World, key: str) -> None:
    refused(call.post("/runs", world.body(), Idempotency_Key=key), 400, "Idempotency-Key")
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_makes_the_run(call: Caller, world: World, secret: str) -> None:
    answers = []
    gate = threading.Barrier(6)

    def ask() -> None:
        gate.wait()
        answers.append(strictly(Caller(secret).post("/runs", world.body(), Idempotency_Key="race"))["id"])
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert len(set(answers)) == 1
    assert Run.objects.count() == 1
    assert Attempt.objects.count() == 1
