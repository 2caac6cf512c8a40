"""Exports sent elsewhere, by the API."""

from __future__ import annotations

import pytest

from webapp.deliveries import places
from webapp.deliveries.models import Delivery, Destination
from webapp.runs import actions
from webapp.runs.models import Export

from .conftest import Caller, World, checkpoint, refused, strictly

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI"}


@pytest.fixture
def export(world: World) -> Export:
    run = world.run()
    actions.launch(run, "ada")
    node = world.nodes[0]
    saved = checkpoint(run.attempt, 4)
    return Export.objects.create(
        checkpoint=saved, dtype="float32", state="ready", node=node, slot=vars(node.slot()), files=[]
    )


@pytest.fixture
def bucket(world: World) -> Destination:
    return places.save(Destination(name="bucket", kind="s3"), {"bucket": "models"}, KEYS, world.user)


def test_it_works(call: Caller, export: Export, bucket: Destination) -> None:
    listed = strictly(call.get("/destinations"))["items"]
    assert [(d["name"], d["secrets"]) for d in listed] == [("bucket", sorted(KEYS))]
    answer = call.post(f"/exports/{export.pk}/deliveries", {"destination": "bucket", "name": "chat"})
    assert answer.status_code == 201
    made = strictly(answer)
    assert (made["place"], made["state"], made["requested_by"]) == ("s3://models/chat", "queued", "ada")
    Delivery.objects.update(state="running", phase="send", done=3, total=12)
    read = strictly(call.get(f"/deliveries/{made['id']}"))
    assert (read["state"], read["done"], read["seconds_left"]) == ("running", 3, None)
    assert [d["id"] for d in strictly(call.get(f"/exports/{export.pk}/deliveries"))["items"]] == [made["id"]]
    for path in ("/destinations", f"/deliveries/{made['id']}"):
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in call.get(path).content.decode()


def test_one_is_cancelled_once(call: Caller, export: Export, bucket: Destination) -> None:
    made = strictly(call.post(f"/exports/{export.pk}/deliveries", {"destination": bucket.pk}))
    assert call.post(f"/deliveries/{made['id']}/cancel").status_code == 200
    assert Delivery.objects.get().cancel_asked_at is not None
    Delivery.objects.update(state="cancelled")
    assert "has ended" in refused(call.post(f"/deliveries/{made['id']}/cancel"), 422, "state")


def test_it_refuses_with_the_field(call: Caller, world: World, export: Export, bucket: Destination) -> None:
    deliveries = f"/exports/{export.pk}/deliveries"
    refused(call.post(deliveries, {"destination": "nowhere"}), 422, "destination")
    refused(call.post(deliveries, {"path": "/models/x"}), 422, "path")
    refused(call.post(deliveries, {"destination": "bucket", "secret": "x"}), 422, "secret")
    refused(call.post("/exports/99/deliveries", {"destination": "bucket"}), 404, "id")
    missing = call.get("/deliveries/99")
    refused(missing, 404, "id")
    assert "GET the export's deliveries" in missing.json()["problems"][0]["fix"]
    assert not Delivery.objects.exists()
