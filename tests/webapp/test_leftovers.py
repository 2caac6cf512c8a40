"""The page of what is left on nodes, and its end."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from webapp.fleet.models import Node
from webapp.leftovers.models import Leftover, NodeLook

from .rows import HOSTILE, World


def left(world: World) -> Leftover:
    return Leftover.objects.create(
        node=world.nodes[0], folder=f"/scratch/{HOSTILE}", why="unknown", kind="attempt", run=77, number=1,
        supervised=True, processes=2, began_at=timezone.now(),
    )  # fmt: skip


def test_it_lists_what_is_left_and_ends_it_after_asking(page: Client, world: World) -> None:
    row = left(world)
    assert ">1</span>" in page.get("/fleet/nodes/").content.decode()
    text = page.get("/fleet/leftovers/").content.decode()
    assert "run #77, not known here, attempt 1" in text
    assert "<img src=x" not in text
    asks = page.get(f"/fleet/leftovers/{row.pk}/end").content.decode()
    assert "Somebody else may need it" in asks
    assert "hx-get" not in asks.partition("<main")[2]  # nothing redraws it
    assert Leftover.objects.get().end_asked_at is None
    done = page.post(f"/fleet/leftovers/{row.pk}/end", follow=True).content.decode()
    assert "ending…" in done
    assert (Leftover.objects.get().end_asked_by, world.nodes[0].changes.first().actor) == ("ada", "ada")


def test_an_empty_page_says_whether_anybody_has_looked(page: Client, world: World) -> None:
    assert "No node has answered yet" in page.get("/fleet/leftovers/").content.decode()
    assert "2 nodes are being asked" in page.post("/fleet/leftovers/look", follow=True).content.decode()


def test_nodes_that_did_not_answer_are_no_proof(page: Client, world: World) -> None:
    alpha, beta = world.nodes
    NodeLook.objects.create(node=alpha, asked_at=timezone.now())
    NodeLook.objects.create(node=beta, asked_at=timezone.now(), problem="no connection. Check it.")
    text = page.get("/fleet/leftovers/rows").content.decode()
    assert "Nothing is left over on the nodes that answered" in text
    assert "beta: no connection. Check it." in text
    NodeLook.objects.update(problem="")
    Node.objects.filter(pk=beta.pk).update(in_service=False)
    text = page.get("/fleet/leftovers/rows").content.decode()
    assert "Nothing is left over: " in text
    assert "asked only when you press the button: beta." in text
