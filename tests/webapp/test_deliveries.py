"""Destinations are made by staff and keep their secrets to themselves; an export is sent from beside its row."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from training.spec.events import Event as Line
from training.spec.lint import Refused
from webapp.deliveries import actions, places
from webapp.deliveries.actions import deliver
from webapp.deliveries.models import Delivery, Destination
from webapp.deliveries.models.delivery import spot_of
from webapp.runs import journal
from webapp.runs.models import Event, Export, Stream

from .rows import HOSTILE, START, World

SECRET = "wJalrXUtnFEMI-K7MDENG"
S3 = {"name": "bucket", "bucket": "models", "region": "eu-central-1", "prefix": "site", "part_megabytes": 32}
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.fixture
def export(world: World) -> Export:
    feed = world.running("a run")
    node = world.nodes[0]
    files = [{"name": "config.json", "size": 7, "sha256": "a" * 64}]
    return Export.objects.create(
        checkpoint=feed.checkpoint(4), dtype="float32", state="ready", node=node, slot=vars(node.slot()), files=files
    )


@pytest.fixture
def bucket(world: World) -> Destination:
    settings = {name: value for name, value in S3.items() if name != "name"}
    return places.save(Destination(name="bucket", kind="s3"), settings, KEYS, world.user)


@pytest.fixture
def other(world: World) -> User:
    return User.objects.create(username="bob")


def run_page(page: Client, export: Export) -> str:
    return page.get(export.run.get_absolute_url()).content.decode()


def test_a_destination_is_made_and_its_secret_is_never_shown(page: Client, world: World) -> None:
    answer = page.post("/deliveries/destinations/add/s3", S3 | KEYS)
    assert answer.status_code == 302
    made = Destination.objects.get()
    assert (made.settings["bucket"], made.secrets, made.made_by) == ("models", KEYS, world.user)
    edit = f"/deliveries/destinations/{made.pk}/"
    admin = [f"/admin/deliveries/destination/{made.pk}/change/", "/admin/deliveries/destination/"]
    for address in ["/deliveries/destinations/", edit, *admin]:
        text = page.get(address).content.decode()
        assert "bucket" in text
        assert SECRET not in text
        assert made.sealed_secrets not in text
    assert SECRET not in str(Destination.objects.values().get())


def test_a_secret_is_kept_replaced_and_forgotten(page: Client, export: Export, bucket: Destination) -> None:
    edit = f"/deliveries/destinations/{bucket.pk}/"
    page.post(edit, S3 | {"prefix": "elsewhere"})
    bucket.refresh_from_db()
    assert (bucket.settings["prefix"], bucket.secrets) == ("elsewhere", KEYS)
    page.post(edit, S3 | {"AWS_SECRET_ACCESS_KEY": "another"})
    bucket.refresh_from_db()
    assert bucket.secrets == KEYS | {"AWS_SECRET_ACCESS_KEY": "another"}
    page.post(f"{edit}forget")
    bucket.refresh_from_db()
    assert (bucket.secrets, bucket.sealed_secrets) == ({}, "")
    assert "missing" in page.get("/deliveries/destinations/").content.decode()
    assert "its secret is missing" in run_page(page, export)


def test_a_secret_does_not_go_to_another_server(page: Client, export: Export, bucket: Destination) -> None:
    edit = f"/deliveries/destinations/{bucket.pk}/"
    waiting = deliver(export, User.objects.get(username="ada"), bucket)
    assert places.secrets_for(waiting) == KEYS
    for moved in ({"endpoint": "https://elsewhere.example"}, {"insecure": "on"}):
        answer = page.post(edit, S3 | moved)
        assert (answer.status_code, "not for another server" in answer.content.decode()) == (422, True)
        page.post(edit, S3 | moved | {"AWS_SECRET_ACCESS_KEY": "another"})  # the other half of it is asked for, too
        bucket.refresh_from_db()
        assert (bucket.settings["endpoint"], bucket.settings["insecure"], bucket.secrets) == ("", False, KEYS)
    other = {"AWS_ACCESS_KEY_ID": "theirs", "AWS_SECRET_ACCESS_KEY": "another"}
    assert page.post(edit, S3 | {"endpoint": "https://elsewhere.example"} | other).status_code == 302
    bucket.refresh_from_db()
    assert bucket.secrets == other
    waiting.refresh_from_db()
    with pytest.raises(Refused, match="endpoint of bucket was changed since"):
        places.secrets_for(waiting)


def test_a_node_s_folder_keeps_its_node_while_it_is_changed(page: Client, world: World) -> None:
    typed = {"name": "other", "folder": "/models", "node": world.nodes[1].pk}
    page.post("/deliveries/destinations/add/node", typed)
    made = Destination.objects.get()
    assert made.node == world.nodes[1]
    text = page.get(f"/deliveries/destinations/{made.pk}/").content.decode()
    assert f'<option value="{world.nodes[1].pk}" selected>' in text


@pytest.mark.parametrize(
    ("kind", "typed", "field"),
    [
        ("path", {"name": "shelf", "folder": "models"}, "folder"),
        ("s3", S3 | KEYS | {"bucket": "S3://x"}, "bucket"),
        ("s3", S3, "AWS_SECRET_ACCESS_KEY"),
        ("s3", S3 | KEYS | {"endpoint": f"https://me:{SECRET}@host"}, "endpoint"),
        ("hub", {"name": "hub", "repo": "no-slash", "branch": "main", "HF_TOKEN": SECRET}, "repo"),
        ("node", {"name": "n", "folder": "/models"}, "node"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(page: Client, kind: str, typed: dict[str, Any], field: str) -> None:
    answer = page.post(f"/deliveries/destinations/add/{kind}", typed)
    text = answer.content.decode()
    assert (answer.status_code, f'data-field="{field}"' in text) == (422, True)
    assert f'value="{SECRET}"' not in text
    assert not Destination.objects.exists()


def test_only_staff_changes_destinations_or_names_a_folder(
    client: Client, world: World, export: Export, bucket: Destination, other: User
) -> None:
    client.force_login(other)
    assert client.get("/deliveries/destinations/").status_code == 200
    for address in ("add/s3", f"{bucket.pk}/", f"{bucket.pk}/forget", f"{bucket.pk}/delete"):
        assert client.post(f"/deliveries/destinations/{address}", S3 | KEYS).status_code == 403
    client.post(f"/deliveries/exports/{export.pk}/send", {"path": "/models/x"})
    assert not Delivery.objects.exists()
    client.post(f"/deliveries/exports/{export.pk}/send", {"destination": bucket.pk})
    assert Delivery.objects.get().requested_by == other


def test_it_is_sent_shown_and_cancelled(page: Client, world: World, export: Export, bucket: Destination) -> None:
    assert "Send to" in run_page(page, export)
    typed, there = {"destination": bucket.pk, "name": "chat"}, {"Referer": "http://testserver/datasets/?x=1"}
    answer = page.post(f"/deliveries/exports/{export.pk}/send", typed, headers=there)
    assert answer.headers["Location"] == f"/datasets/#deliveries-{export.pk}"
    delivery = Delivery.objects.get()
    assert (delivery.place, delivery.target["prefix"]) == ("s3://models/site/chat", "site/chat")
    told = Event.objects.get(kind="delivery", data__new="queued")
    assert (told.data["actor"], delivery.place in told.data["text"]) == ("ada", True)
    for text in (run_page(page, export), page.get(export.get_absolute_url()).content.decode()):
        assert delivery.place in text
    assert "every 2s" in page.get(f"/deliveries/exports/{export.pk}/part").content.decode()
    assert SECRET not in text
    assert "sent to s3://models/site/chat" in page.get(f"/runs/{export.run.pk}/part/history").content.decode()
    Delivery.objects.update(state="running", phase="send", done=3, total=12)
    assert 'aria-valuenow="3"' in page.get(f"/deliveries/exports/{export.pk}/part").content.decode()
    answer = page.post(f"/deliveries/{delivery.pk}/cancel", headers={"Referer": "https://evil.example/x"})
    assert answer.headers["Location"] == f"/runs/{export.run.pk}/#deliveries-{export.pk}"
    assert "being cancelled" in run_page(page, export)


def test_progress_comes_from_the_node_s_lines_with_the_time_left(
    page: Client, export: Export, bucket: Destination, world: World
) -> None:
    delivery = deliver(export, world.user, bucket)
    Delivery.objects.update(state="running")
    stream = Stream.objects.create(
        attempt=delivery.attempt, node=world.nodes[0], source=f"delivery@{delivery.pk}", path="/x",
        job_kind="delivery", job_id=delivery.pk,
    )  # fmt: skip
    progress = [Line(i, START + i, "progress", None, {"phase": "send", "done": 10 * i, "total": 100}) for i in (1, 4)]
    flagged = Line(5, START + 5, "progress", None, {"phase": "send", "done": "fifty", "total": 100})
    journal.record(stream, [*progress, flagged], 9)
    text = page.get(f"/deliveries/exports/{export.pk}/part").content.decode()
    assert "40 B of 100 B" in text
    assert "about 6 s left" in text
    facts = {"where": "s3://x", "files": [], "bytes_sent": 5, "bytes_skipped": 0}
    journal.record(stream, [Line(6, START, "delivered", None, facts | {"bytes_sent": -1})], 10)
    assert Delivery.objects.get().result == {}
    journal.record(stream, [Line(7, START, "delivered", None, facts | {"more": "left out"})], 11)
    assert Delivery.objects.get().result == facts


def test_what_a_node_said_of_it_is_shown_as_text(page: Client, export: Export, bucket: Destination) -> None:
    made = deliver(export, User.objects.get(username="ada"), bucket)
    result = {"where": HOSTILE, "url": "javascript:alert(1)", "bytes_sent": 5, "bytes_skipped": 7, "revision": HOSTILE}
    Delivery.objects.update(state="done", result=result)
    text = run_page(page, export)
    assert "7 B were there already" in text
    assert HOSTILE not in text
    assert "javascript:" not in text
    Delivery.objects.update(result=result | {"url": "https://hub.example/org/x"})
    assert 'href="https://hub.example/org/x"' in run_page(page, export)
    assert made.place in text


def refusal(export: Export, world: World, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refused) as refused:
        deliver(export, world.user, *args, **kwargs)
    assert not Delivery.objects.exists()
    return refused.value.problems[0].field


def test_it_refuses_what_cannot_work(world: World, export: Export, bucket: Destination) -> None:
    assert refusal(export, world) == "destination"
    assert refusal(export, world, bucket, folder="/models/x") == "path"
    assert refusal(export, world, bucket, name="../x") == "name"
    assert refusal(export, world, folder="/models/x", name="mine") == "name"
    assert "folder" in refusal(export, world, folder="relative")
    assert "folder" in refusal(export, world, folder=str(export.folder.model))
    places.forget_secrets(bucket)
    assert refusal(export, world, bucket) == "destination"
    Export.objects.update(state="running")
    assert refusal(export, world, folder="/models/x") == "export"


def test_one_that_failed_is_tried_again_with_its_path_filled_in(page: Client, world: World, export: Export) -> None:
    deliver(export, world.user, None, folder="/srv/away/x")
    Delivery.objects.update(state="failed", reason_text="/srv/away is not there")
    assert 'name="path" value="/srv/away/x"' in run_page(page, export)


def test_the_same_place_is_sent_to_by_one_at_a_time(world: World, export: Export, bucket: Destination) -> None:
    deliver(export, world.user, bucket)
    with pytest.raises(Refused, match="under way"):
        deliver(export, world.user, bucket)
    with pytest.raises(Refused, match="under way"):
        places.delete(bucket)
    Delivery.objects.update(state="done")
    deliver(export, world.user, bucket)
    Delivery.objects.update(state="failed")
    places.delete(bucket)
    assert Delivery.objects.filter(destination=None).count() == 2


def test_of_two_at_once_the_database_lets_one(world: World, export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither sees the other's row when it looks: they are of two exports, and of two spellings of one place."""
    second = Export.objects.create(
        checkpoint=export.checkpoint, dtype="bfloat16", state="ready", node=export.node, slot=export.slot, files=[]
    )
    settings = {"bucket": "models", "region": "eu-central-1", "prefix": "site", "part_megabytes": 64}
    other = places.save(Destination(name="same", kind="s3"), settings, KEYS, world.user)
    first = places.save(Destination(name="first", kind="s3"), settings | {"part_megabytes": 32}, KEYS, world.user)
    deliver(export, world.user, first, name="chat")
    with pytest.raises(Refused, match=r"delivery \d+ to it is under way"):
        deliver(second, world.user, other, name="chat")
    monkeypatch.setattr(actions, "_check", lambda *_: None)  # what it sees that looks before the other's commit
    with pytest.raises(Refused, match="another delivery to it is under way"):
        deliver(second, world.user, other, name="chat")
    deliver(second, world.user, other, name="another")
    Delivery.objects.update(state="done")
    deliver(second, world.user, other, name="chat")


def test_a_folder_is_the_same_place_on_one_node_alone(world: World) -> None:
    folder, hub = {"kind": "path", "folder": "/m"}, {"kind": "hub", "endpoint": "", "repo": "a/b", "branch": "main"}
    assert spot_of(folder, 1) != spot_of(folder, 2)
    assert spot_of(hub, 1) == spot_of(hub | {"private": True}, 2)
