"""One node: its page, its drain with a reason, its edits, its removal, and who did what."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from training.spec.lint import Refused
from webapp.fleet import actions, enrol, provisioning
from webapp.fleet.labels import labels_of
from webapp.fleet.models import Node, NodeChange, Provision
from webapp.runs import actions as actions_of_runs
from webapp.runs.models import Attempt, Placement, Run
from webapp.runs.states import RunState

from .rows import HOSTILE, World


def edited(node: Node, **changes: object) -> dict[str, Any]:
    names = ("name", "address", "port", "user", "python", "scratch", "processes", "internal_address", "interface")
    same = {name: getattr(node, name) for name in names}
    return same | {"cluster": node.cluster.name, "identity": node.identity_id, "notes": "", "labels": ""} | changes


def told(node: Node) -> list[str]:
    return [f"{row.actor}: {row.text}" for row in NodeChange.objects.filter(node=node).order_by("pk")]


def test_its_page_says_what_is_on_it_and_what_was(page: Client, world: World) -> None:
    world.running("holder").run.attempt.claims.create(node=world.nodes[0])
    Node.objects.filter(name="alpha").update(notes=HOSTILE, drained_why=HOSTILE, in_service=False)
    for address in ("/fleet/nodes/alpha/", f"/fleet/nodes/{world.nodes[0].pk}/now"):
        text = page.get(address).content.decode()
        assert "held by" in text
        assert "<img" not in text.replace('<img src="/static', "")
    assert page.get("/fleet/nodes/alpha/").context["placements_count"] == 1
    assert "No run has been here yet" not in page.get("/fleet/nodes/alpha/").content.decode()
    assert page.get("/fleet/nodes/nobody/").status_code == 404


def test_it_is_drained_with_a_reason_and_returned(page: Client, world: World) -> None:
    node = world.nodes[0]
    page.post(f"/fleet/nodes/{node.pk}/service", {"in_service": "0", "why": "fan is\n loud"})
    node.refresh_from_db()
    assert (node.in_service, node.drained_by, node.drained_why) == (False, "ada", "fan is loud")
    assert "fan is loud" in page.get("/fleet/nodes/").content.decode()
    page.post(f"/fleet/nodes/{node.pk}/service", {"in_service": "1"})
    node.refresh_from_db()
    assert (node.in_service, node.drained_at, node.drained_why) == (True, None, "")
    assert told(node)[-2:] == ["ada: taken out of service: fan is loud", "ada: returned to service"]
    with pytest.raises(Refused, match="201 characters"):
        actions.drain(node, "ada", "x" * 201)
    with pytest.raises(Refused, match="control character"):
        actions.drain(node, "ada", "fan\0")


def test_an_edit_is_kept_with_what_was_before(page: Client, world: World) -> None:
    node, beta = world.nodes
    answer = page.post(
        f"/fleet/nodes/{node.pk}/edit", edited(node, port=2222, labels="NVLink, a100", jump=beta.pk, notes="rack 3")
    )
    assert answer.status_code == 302, answer.context["form"].errors
    node.refresh_from_db()
    assert (node.port, node.labels, node.jump, node.notes) == (2222, ["a100", "nvlink"], beta, "rack 3")
    assert told(node)[-1] == "ada: port 22 → 2222, jump none → beta, labels none → a100 nvlink, notes changed"
    assert 'value="a100 nvlink"' in page.get(f"/fleet/nodes/{node.pk}/edit").content.decode()
    page.post(f"/fleet/nodes/{node.pk}/edit", edited(node, labels="a100 nvlink", jump=beta.pk, notes="rack 3"))
    assert len(told(node)) == 2, "nothing was changed, so nothing is told"
    circle = page.post(f"/fleet/nodes/{beta.pk}/edit", edited(beta, jump=node.pk))
    assert "circle" in str(circle.context["form"].errors["jump"])


def test_an_edit_does_not_undo_the_interpreter_that_was_made_meanwhile(page: Client, world: World) -> None:
    node = world.nodes[0]
    address, made, bad = f"/fleet/nodes/{node.pk}/edit", "/scratch/alpha/venvs/1/bin/python", "/opt/other/python"
    opened = edited(node, python="") | {"opened_python": ""}
    Node.objects.filter(pk=node.pk).update(python=made)
    refused = page.post(address, opened | {"port": 0}).content.decode()
    assert 'name="opened_python" value=""' in refused, "refused for another reason, the page stays as old as it was"
    page.post(address, opened | {"port": 2222})
    node.refresh_from_db()
    assert (node.port, node.python, node.in_service) == (2222, made, True)
    answer = page.post(address, opened | {"python": bad})
    assert "while this page was open" in str(answer.context["form"].errors["python"])
    assert f'name="opened_python" value="{made}"' in answer.content.decode()
    page.post(address, opened | {"python": "", "opened_python": made})
    node.refresh_from_db()
    assert (node.python, node.in_service) == ("", False)
    assert told(node)[-1].endswith("python /scratch/alpha/venvs/1/bin/python → none, taken out of service: "
                                   "it has no interpreter yet")  # fmt: skip


def test_the_name_of_a_removed_node_is_told_as_such(page: Client, world: World) -> None:
    alpha, beta = world.nodes
    Node.objects.filter(pk=alpha.pk).update(removed_at=timezone.now(), in_service=False)
    answer = page.post(f"/fleet/nodes/{beta.pk}/edit", edited(beta, name="alpha"))
    assert '<a href="/fleet/nodes/alpha/">alpha</a> was removed: bring it back' in answer.content.decode()
    beta.name = "alpha"
    with pytest.raises(Refused, match="name is kept"):
        enrol.put_node(beta, "pair")
    alpha.refresh_from_db()
    with pytest.raises(Refused, match="alpha was removed"):
        enrol.put_node(alpha, "pair")


def test_a_node_that_is_held_stays_in_its_cluster(page: Client, world: World) -> None:
    node = world.nodes[0]
    world.running().run.attempt.claims.create(node=node)
    answer = page.post(f"/fleet/nodes/{node.pk}/edit", edited(node, cluster="other"))
    assert [problem.field for problem in answer.context["problems"]] == ["cluster"]
    node.refresh_from_db()
    assert node.cluster.name == "pair"


def test_it_is_not_removed_while_something_is_on_it_or_would_be_lost(page: Client, world: World) -> None:
    node = world.nodes[0]
    feed = world.running("holder")
    feed.checkpoint(1)
    feed.run.attempt.claims.create(node=node)
    held = page.post(f"/fleet/nodes/{node.pk}/remove", {"even_so": "1"})
    assert held.status_code == 422
    assert "holds it" in held.content.decode()
    feed.run.attempt.claims.all().delete()
    assert "has not ended there" in page.get(f"/fleet/nodes/{node.pk}/remove").content.decode()
    feed.end(RunState.FAILED)
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    lost = page.post(f"/fleet/nodes/{node.pk}/remove")
    assert lost.status_code == 422
    assert "1 complete checkpoint" in lost.content.decode()
    page.post(f"/fleet/nodes/{node.pk}/remove", {"even_so": "1"})
    node.refresh_from_db()
    assert (node.removed_by, node.in_service) == ("ada", False)
    assert page.get(Run.objects.get().get_absolute_url()).status_code == 200
    assert "alpha" not in page.get("/fleet/nodes/cards").content.decode()
    assert "alpha" in page.get("/fleet/nodes/cards?state=removed").content.decode()
    with pytest.raises(Refused, match="removed"):
        actions.restore(node, "ada")
    page.post(f"/fleet/nodes/{node.pk}/back")
    node.refresh_from_db()
    assert (node.removed_at, node.in_service) == (None, False)


def test_one_that_was_removed_since_it_was_looked_at_is_not_returned(world: World) -> None:
    kept, gone = world.nodes
    world.running("holder").end(RunState.FAILED)
    Attempt.objects.update(ended_at=timezone.now())
    Placement.objects.exclude(node=kept).delete()
    for node in Node.objects.all():
        actions.remove(node, "eve")
    for node in (kept, gone):
        with pytest.raises(Refused, match="removed"):
            actions.restore(node, "ada")
    kept.refresh_from_db()
    assert (kept.removed_by, kept.in_service) == ("eve", False)
    for act in (actions.drain, actions.bring_back, actions.remove):
        with pytest.raises(Refused, match="removed"):
            act(gone, "ada")


def test_a_node_of_which_nothing_tells_is_gone(page: Client, world: World) -> None:
    alpha, beta = world.nodes
    beta.jump = alpha
    enrol.put_node(beta, "pair")
    assert "beta is reached through it" in page.post(f"/fleet/nodes/{alpha.pk}/remove").content.decode()
    page.post(f"/fleet/nodes/{beta.pk}/remove")
    page.post(f"/fleet/nodes/{alpha.pk}/remove")
    assert not Node.objects.exists()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"alpha", "beta"}),
        ("label=a100", {"alpha"}),
        ("cluster=other", set()),
        ("state=drained", {"beta"}),
        ("state=free&cluster=pair", {"alpha"}),
        ("state=held", set()),
        ("state=problem", {"beta"}),
        ("state=no-such", {"alpha", "beta"}),
    ],
)
def test_the_list_is_filtered(page: Client, world: World, query: str, shown: set[str]) -> None:
    Node.objects.filter(name="alpha").update(labels=["a100"])
    Node.objects.filter(name="beta").update(in_service=False, problem="disk: full")
    clusters = page.get(f"/fleet/nodes/?{query}").context["clusters"]
    assert {card.node.name for _, cards in clusters for card in cards} == shown


def test_the_keys_to_compare_are_those_of_the_host_that_shows_another(page: Client, world: World) -> None:
    alpha, beta = world.nodes
    Node.objects.filter(pk=beta.pk).update(jump=alpha)
    shown = "host_key: {}its host key is SHA256:a, the pinned one is SHA256:b"
    for through, whose in (("", beta), ("jump host alpha: ", alpha), ("jump host gone: ", None)):
        Node.objects.filter(pk=beta.pk).update(problem=shown.format(through))
        for address in ("/fleet/nodes/cards", f"/fleet/nodes/{beta.pk}/now"):
            links = re.findall(r"/fleet/nodes/(\d+)/repin", page.get(address).content.decode())
            assert links == ([str(whose.pk)] if whose else [])


def test_one_that_is_drained_is_not_ready_and_one_without_an_interpreter_is_not_returned(
    page: Client, world: World
) -> None:
    alpha, beta = world.nodes
    Node.objects.update(checked_at=timezone.now())
    actions.drain(alpha, "ada")
    Node.objects.filter(pk=beta.pk).update(python="", in_service=False)
    ready = page.get("/fleet/nodes/?state=ready").context["clusters"]
    assert [card.node.name for _, cards in ready for card in cards] == []
    text = page.get("/fleet/nodes/cards").content.decode()
    assert (text.count("✓ ready"), text.count("Return to service"), text.count("Make an interpreter")) == (0, 1, 1)
    assert 'data-testid="return"' not in page.get("/fleet/nodes/beta/").content.decode()


def test_an_interpreter_that_was_waited_for_calls_those_that_wait_for_the_node(
    world: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr("webapp.dispatch.send", lambda name, key: sent.append((name, key)))
    run = world.draft()
    actions_of_runs.launch(run, "ada")
    node = world.nodes[0]
    Node.objects.filter(pk=node.pk).update(python="", in_service=False, drained_why="it has no interpreter yet")
    with django_capture_on_commit_callbacks(execute=True):
        actions.take_python(node, "/made/python", "ada", "made")
    node.refresh_from_db()
    assert (node.python, node.in_service, told(node)[-1]) == ("/made/python", True, "ada: made, returned to service")
    assert ("workers.advance_run", run.pk) in sent


def test_labels_are_short_words() -> None:
    assert labels_of("B200, nvlink  b200") == ["b200", "nvlink"]
    for wrong in ("a;id", "ä", "x" * 31, " ".join(f"l{i}" for i in range(21))):
        with pytest.raises(Refused):
            labels_of(wrong)


def test_a_node_without_an_interpreter_waits_for_one(page: Client, world: World) -> None:
    node = world.nodes[0]
    page.post(f"/fleet/nodes/{node.pk}/edit", edited(node, python=""))
    node.refresh_from_db()
    assert (node.in_service, node.drained_why) == (False, "it has no interpreter yet")
    with pytest.raises(Refused, match="no interpreter"):
        actions.restore(node, "ada")
    page.post(f"/fleet/nodes/{node.pk}/interpreter/make", {"base": "/usr/bin/python3", "path": "", "gpu": "1"})
    made = Provision.objects.get()
    assert (made.base, made.gpu, made.requested_by) == ("/usr/bin/python3", True, "ada")
    assert "being made there" in page.post(f"/fleet/nodes/{node.pk}/remove").content.decode()
    again = page.post(f"/fleet/nodes/{node.pk}/interpreter/make", {"path": "python3"}, follow=True)
    assert "no absolute path" in again.content.decode()
    with pytest.raises(Refused, match="of at most 500 characters"):
        provisioning.provision(node, "ada", base="/" + "x" * 500)
    part = f"/fleet/nodes/{node.pk}/interpreter"
    Provision.objects.update(state="running", step="packages", number=2, steps=2, line=HOSTILE, step_seconds=75)
    text = page.get(part).content.decode()
    assert "Step 2 of 2: packages" in text
    assert "1 min 15 s" in text
    assert "<img" not in text
    Provision.objects.update(
        state="failed", reason=HOSTILE, fix="Free space.", tail=[HOSTILE], ended_at=made.created_at
    )
    assert "Free space." in page.get(part).content.decode()
    assert "<img" not in page.get(part).content.decode()
    assert "Try again" in page.get("/fleet/nodes/alpha/").content.decode()
    assert "No interpreter was made" in page.get(part).content.decode()
    Node.objects.filter(pk=node.pk).update(python="/opt/python")
    assert 'role="alert"' not in page.get(part).content.decode()
