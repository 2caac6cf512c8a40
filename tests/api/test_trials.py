"""Trials over the API: asked, read while they answer, cancelled."""

from __future__ import annotations

import pytest

from tests.webapp.trials import Node0, exported, moved
from webapp.runs import actions
from webapp.runs.models import Checkpoint, Export
from webapp.trials.models import Trial

from .conftest import Caller, World, refused, strictly


@pytest.fixture
def ready(world: World) -> Export:
    run = world.run()
    actions.launch(run, "ada")
    checkpoint = Checkpoint.objects.create(attempt=run.attempt, step=4, nodes=2, world_size=2)
    return exported(checkpoint, world.nodes[0])


def test_it_works(world: World, call: Caller, ready: Export) -> None:
    path = f"/runs/{ready.run.pk}/trials"
    answer = call.post(path, {"prompts": [{"text": "hi"}], "models": ["base", ready.pk], "temperature": 0.5, "seed": 3})
    made = strictly(answer)
    assert (answer.status_code, made["state"], made["node"], made["requested_by"]) == (201, "queued", "n0", "ada")
    assert made["prompts"] == [{"messages": [{"role": "user", "content": "hi"}]}]
    assert (made["sampling"]["temperature"], made["sampling"]["seed"]) == (0.5, 3)
    trial = moved(Trial.objects.get(), "preparing", "running")
    Node0(trial).answer("good day", model=1)
    found = strictly(call.get(f"/trials/{made['id']}"))
    assert [(a["export"], a["text"], a["stopped_by"]) for a in found["answers"]] == [
        (None, "", ""), (ready.pk, "good day", "eos")
    ]  # fmt: skip
    assert strictly(call.get(path))["items"] == [found]
    assert call.post(f"/trials/{made['id']}/cancel").status_code == 200
    trial.refresh_from_db()
    assert trial.cancel_asked_at is not None


def test_it_rejects(world: World, call: Caller, ready: Export) -> None:
    path, good = f"/runs/{ready.run.pk}/trials", {"prompts": [{"text": "hi"}], "models": ["base"]}
    assert "at least 1 needed, 0 given" in refused(call.post(path, good | {"models": []}), 422, "models")
    assert "no export '77'" in refused(call.post(path, good | {"models": [77]}), 422, "models")
    assert "either" in refused(call.post(path, good | {"prompts": [{}]}), 422, "prompts.1")
    assert refused(call.post(path, good | {"max_new_tokens": 2000}), 422, "max_new_tokens")
    assert refused(call.post(path, good | {"prompts": [{"messages": [{"role": "root", "content": "x"}]}]}), 422,
                   "prompts.0.messages.0.role")  # fmt: skip
    assert refused(call.get("/trials/1"), 404, "id")
    assert refused(call.post("/trials/1/cancel"), 404, "id")
    assert not Trial.objects.exists()
