"""GET, PATCH and DELETE of checkpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse

from webapp.runs import actions
from webapp.runs.models import Checkpoint, CheckpointCopy, CheckpointPart, Event, Run

from .conftest import ROOT, Caller, Feed, World, checkpoint, metrics, refused, strictly


@pytest.fixture
def run(world: World, feed: Feed) -> Run:
    run = world.run(state="running")
    attempt = run.attempts.create(number=1)
    actions.place(attempt, world.nodes)
    feed(attempt, metrics((2, 2.5), (4, "NaN")))
    for step in (2, 4):
        row = checkpoint(attempt, step)
        for rank in range(2):
            CheckpointPart.objects.create(checkpoint=row, node_rank=rank, bytes=500, files=2)
    Run.objects.filter(pk=run.pk).update(state="stopped", total_steps=12)
    attempt.ended_at = row.created_at
    attempt.save()
    return run


def send(call: Caller, method: str, path: str, body: Any = None) -> HttpResponse:
    raw = "" if body is None else json.dumps(body)
    return getattr(call.client, method)(ROOT + path, raw, content_type="application/json", headers=call.headers)


def at(step: int) -> Checkpoint:
    return Checkpoint.objects.get(step=step)


def test_a_list_has_all_facts_and_is_paged(call: Caller, run: Run) -> None:
    page = strictly(call.get(f"/runs/{run.pk}/checkpoints?limit=1"))
    (newest,) = page["items"]
    assert (newest["step"], newest["loss"], newest["bytes"], newest["manifests"]) == (4, "NaN", 1000, 2)
    assert newest["uses"][0] == {"name": "resume", "possible": True, "why": "on 2 ranks, as it was saved"}
    assert [(p["node"], p["wrote"], p["bytes"], p["parts"]) for p in newest["places"]] == [
        ("n0", [0], 500, None),
        ("n1", [1], 500, None),
    ]
    (older,) = strictly(call.get(f"/runs/{run.pk}/checkpoints?cursor={page['next']}"))["items"]
    assert (older["step"], older["eval_loss"]) == (2, None)
    assert strictly(call.get(f"/checkpoints/{older['id']}")) == older
    assert older["url"].endswith(f"{ROOT}/checkpoints/{older['id']}")
    refused(call.get("/checkpoints/999"), 404, "id")
    refused(call.get("/runs/999/checkpoints"), 404, "id")


def test_a_pin_and_a_note_are_written_and_told(call: Caller, run: Run) -> None:
    path = f"/checkpoints/{at(2).pk}"
    body = strictly(send(call, "patch", path, {"pinned": True, "notes": "keep"}))
    assert (body["pinned"], body["pinned_by"], body["notes"], body["settled"]) == (True, "ada", "keep", False)
    assert strictly(send(call, "patch", path, {"pinned": True}))["notes"] == "keep"
    assert [e.data["act"] for e in Event.objects.filter(kind="shelf").order_by("number")] == ["pinned", "noted"]
    CheckpointCopy.objects.filter(node__name="n1").update(problem="n1: no connection")
    assert strictly(call.get(path))["places"][1]["problem"] == "n1: no connection"
    assert strictly(call.get(f"/runs/{run.pk}"))["checkpoints"][0]["pinned"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"pinned": 1}, "pinned"), ({"pin": 1}, "pin"), ({"notes": "x" * 5000}, "notes"), ({"notes": "\x01"}, "notes")],
)
def test_a_change_that_can_not_be_changes_nothing(call: Caller, run: Run, body: dict[str, Any], field: str) -> None:
    refused(send(call, "patch", f"/checkpoints/{at(2).pk}", {"pinned": True} | body), 422, field)
    assert not at(2).pinned
    assert not Event.objects.filter(kind="shelf").exists()


def test_a_deletion_is_accepted_and_read_back(call: Caller, run: Run) -> None:
    path = f"/checkpoints/{at(2).pk}"
    for _ in range(2):
        answer = send(call, "delete", path)
        assert answer.status_code == 202
        body = strictly(answer)
        assert (body["usable"], body["delete_asked_by"], body["deleted_at"]) == (False, "ada", None)
    assert Event.objects.filter(kind="shelf").count() == 1
    assert body["uses"][0] == {"name": "resume", "possible": False, "why": "it is being deleted"}
    refused(send(call, "patch", path, {"pinned": True}), 422, "checkpoint")
    refused(call.post(f"/runs/{run.pk}/exports", {"checkpoint": at(2).pk}), 422, "checkpoint")


def test_the_same_refusals_as_on_the_pages(call: Caller, run: Run) -> None:
    send(call, "patch", f"/checkpoints/{at(2).pk}", {"pinned": True})
    assert "is pinned" in refused(send(call, "delete", f"/checkpoints/{at(2).pk}"), 422, "checkpoint")
    send(call, "patch", f"/checkpoints/{at(2).pk}", {"pinned": False})
    call.post(f"/runs/{run.pk}/exports", {"checkpoint": 4})
    assert "held by export" in refused(send(call, "delete", f"/checkpoints/{at(4).pk}"), 422, "checkpoint")
    assert send(call, "delete", f"/checkpoints/{at(2).pk}").status_code == 202


def test_the_last_one_wants_to_be_named_as_such(call: Caller, run: Run) -> None:
    send(call, "delete", f"/checkpoints/{at(2).pk}")
    path = f"/checkpoints/{at(4).pk}"
    assert "without step 4" in refused(send(call, "delete", path), 422, "even_last")
    assert send(call, "delete", f"{path}?even_last=true").status_code == 202
