"""The queue outside: order, reasons, pauses and moves."""

from __future__ import annotations

from webapp.runs import actions
from webapp.runs.models import Run

from .conftest import Caller, World


def test_a_run_is_made_with_a_wish_waits_is_moved_and_sees_why(call: Caller, world: World) -> None:
    ahead = call.post("/runs", world.body()).json()
    body = world.body(name="second", nodes=1, gpus_per_node=1)
    run = call.post("/runs", body).json()
    assert run["wish"] == {"nodes": 1, "gpus_per_node": 1, "labels": [], "on_nodes": []}
    assert (run["waiting"]["place"], run["waiting"]["runs"]) == (2, [ahead["id"]])
    assert "kept for run" in run["waiting"]["text"]
    queue = call.get("/queue").json()["items"][0]
    assert [(row["run"], row["asks"]) for row in queue["waiting"]][1] == (run["id"], "1 rank on 1 node")
    assert [node["free"] for node in queue["nodes"]] == [[0], [0]]
    refused = call.post(f"/runs/{run['id']}/move", {"nodes": 5})
    assert (refused.status_code, refused.json()["problems"][0]["field"]) == (422, "nodes")
    moved = call.post(f"/runs/{run['id']}/move", {"on_nodes": ["n1"], "priority": -3}).json()
    assert (moved["wish"]["on_nodes"], moved["wish"]["nodes"], moved["priority"]) == (["n1"], 1, -3)
    assert (
        call.post("/runs", world.body(name="third", gpus_per_node=0)).json()["problems"][0]["field"] == "gpus_per_node"
    )


def test_only_staff_pauses(call: Caller, world: World) -> None:
    run = world.run()
    actions.launch(run, "ada")
    assert call.post("/queue/pause", {"why": "x"}).status_code == 403
    world.user.is_staff = True
    world.user.save()
    paused = call.post("/queue/pause", {"cluster": "pair", "why": "new switch"}).json()["items"][0]
    assert [(p["by"], p["why"], p["all"]) for p in paused["pauses"]] == [("ada", "new switch", False)]
    assert "paused by ada" in paused["waiting"][0]["text"]
    assert call.post("/queue/go-on", {"cluster": "pair"}).json()["items"][0]["pauses"] == []
    assert Run.objects.get().state == "queued"
