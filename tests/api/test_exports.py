"""POST /runs/{id}/exports as a plan or at once, and start, cancel, resume of what it made."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.webapp.test_export_page import NO_ROOM, PLAN
from training.spec.exportplan import ExportPlan
from webapp.runs import actions, lifecycle
from webapp.runs.models import Export, Run, Stream
from webapp.runs.states import ExportState

from .conftest import Caller, World, checkpoint, refused, strictly


@pytest.fixture
def run(world: World) -> Run:
    run = world.run()
    checkpoint(actions.launch(run, "ada"), 6)
    return run


def told(world: World, plan: ExportPlan) -> None:
    """Stand in for the worker that asks the node."""
    Export.objects.update(
        state="planned", plan=plan.model_dump(mode="json"), planned_at=timezone.now(), node=world.nodes[0],
        expected_seconds=38.5, made_dtype=plan.writing.dtype,
    )  # fmt: skip


def test_it_works(call: Caller, world: World, run: Run) -> None:
    made = strictly(call.post(f"/runs/{run.pk}/exports", {"plan": True}))
    assert (made["state"], made["plan"], made["waits"], made["dtype"]) == ("queued", None, True, "base")
    assert strictly(call.get(f"/runs/{run.pk}"))["exports"] == [], "a plan is no export yet"
    told(world, PLAN)
    found = strictly(call.get(f"/exports/{made['id']}"))
    assert (found["state"], found["made_dtype"]) == ("planned", "bfloat16")
    plan = found["plan"]
    assert (plan["works"], plan["problems"], plan["expected_seconds"]) == (True, [], 38.5)
    assert plan["writing"]["sizes"] == PLAN.writing.sizes
    assert strictly(call.post(f"/exports/{made['id']}/start", {}))["state"] == "gathering"
    assert strictly(call.post(f"/exports/{made['id']}/start", {}))["state"] == "gathering"
    assert [e["id"] for e in strictly(call.get(f"/runs/{run.pk}"))["exports"]] == [made["id"]]


def test_what_can_not_work_is_refused_with_every_reason(call: Caller, world: World, run: Run) -> None:
    made = strictly(call.post(f"/runs/{run.pk}/exports", {"plan": True}))
    told(world, PLAN.model_copy(update={"problems": (NO_ROOM,)}))
    assert "1 is free" in refused(call.post(f"/exports/{made['id']}/start", {}), 422, "out")
    told(world, PLAN)
    strictly(call.post(f"/exports/{made['id']}/cancel", {}))
    refused(call.post(f"/exports/{made['id']}/start", {}), 422, "state")


def test_it_is_cancelled_and_resumed(call: Caller, world: World, run: Run) -> None:
    made = strictly(call.post(f"/runs/{run.pk}/exports", {"dtype": "float16"}))
    refused(call.post(f"/exports/{made['id']}/resume", {}), 422, "state")
    export = Export.objects.get()
    Stream.objects.create(
        attempt=export.attempt, node=world.nodes[0], source="x", path="/x", job_kind="export", job_id=export.pk
    )
    assert lifecycle.move_job(export, ExportState.FAILED)
    found = strictly(call.post(f"/exports/{made['id']}/resume", {}))
    assert (found["state"], found["starts"]) == ("queued", 2)
    assert strictly(call.post(f"/exports/{made['id']}/cancel", {}))["state"] == "queued"
    assert Export.objects.get().cancel_asked_at


def test_the_same_key_makes_one_export(call: Caller, world: World, run: Run) -> None:
    def ask(body: dict[str, object]) -> object:
        return call.post(f"/runs/{run.pk}/exports", body, **{"Idempotency-Key": "k1"})

    first, again = ask({"dtype": "float16"}), ask({"dtype": "float16"})
    assert strictly(first)["id"] == strictly(again)["id"]
    assert again["Idempotency-Replayed"] == "true"  # type: ignore[index]
    refused(ask({"dtype": "float32"}), 409, "Idempotency-Key")
    assert Export.objects.count() == 1


def test_an_export_that_is_none(call: Caller, world: World) -> None:
    for act in ("start", "cancel", "resume"):
        refused(call.post(f"/exports/7/{act}", {}), 404, "id")
