"""The preflight page: empty, asked for, filling in, over; and the API's same rows."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from webapp.accounts.models import Token
from webapp.fleet.models import Cluster, Node
from webapp.preflights.models import Cell, Preflight, State
from webapp.runs.states import RunState

from .rows import HOSTILE, World

PAGE = "/fleet/clusters/pair/preflight"


def test_the_page_works(page: Client, world: World) -> None:
    assert "have not been looked at" in page.get(PAGE).content.decode()
    where = page.post(PAGE).headers["location"]
    row = Preflight.objects.get()
    assert where == row.get_absolute_url()
    filling = page.get(where).content.decode()
    assert 'hx-trigger="every 1s"' in filling
    assert filling.count('data-state="waiting"') == row.cells.count()
    page.post(PAGE)
    assert Preflight.objects.count() == 1  # the one under way
    Cell.objects.update(state=State.OK, text="fine")
    Cell.objects.filter(check_name="disk", node__name="beta").update(state=State.PROBLEM, text=HOSTILE, fix="Free it.")
    Preflight.objects.update(ended_at=row.asked_at)
    over = page.get(f"{PAGE}/{row.pk}").content.decode()
    assert "✕ 1 problem" in over
    assert "Free it." in over
    assert "<img src=x" not in over
    assert "every 1s" not in over


def test_what_is_not_there(page: Client, world: World) -> None:
    assert page.get("/fleet/clusters/nowhere/preflight").status_code == 404
    assert page.get(f"{PAGE}?id=9").status_code == 404
    assert page.get(f"{PAGE}?id=x").status_code == 404
    Cluster.objects.create(name="empty")
    assert "no node yet" in page.post("/fleet/clusters/empty/preflight", follow=True).content.decode()


def test_the_api_works(page: Client, world: World) -> None:
    secret = Token.issue(world.user, "t")[1]
    as_token = {"headers": {"Authorization": f"Bearer {secret}"}}
    made = page.post(f"/api/v1/clusters/{world.cluster.pk}/preflights", **as_token)
    assert made.status_code == 202
    body = page.get(f"/api/v1/preflights/{made.json()['id']}", **as_token).json()
    assert (body["cluster"], body["ready"], body["run"]) == ("pair", False, None)
    assert {cell["state"] for cell in body["cells"]} == {"waiting"}
    listed = page.get(f"/api/v1/clusters/{world.cluster.pk}/preflights", **as_token).json()
    assert [one["id"] for one in listed["items"]] == [body["id"]]


def test_a_removed_node_is_not_asked_and_a_refused_run_leads_to_its_grid(page: Client, world: World) -> None:
    Node.objects.filter(name="beta").update(removed_at=timezone.now())
    page.post(PAGE)
    assert {cell.node.name for cell in Cell.objects.all()} == {"alpha"}
    feed = world.running()
    row = Preflight.objects.create(cluster=world.cluster, attempt=feed.run.attempt, asked_by="launch")
    feed.end(RunState.FAILED, reason=Reason.PREFLIGHT, text="node alpha: disk_free: full. Free it.")
    shown = page.get(f"/runs/{feed.run.pk}/part/failure").content.decode()
    assert row.get_absolute_url() in shown
    assert f"run #{feed.run.pk}" in page.get(row.get_absolute_url()).content.decode()
