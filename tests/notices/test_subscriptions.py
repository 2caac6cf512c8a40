"""The page of subscriptions: made, tried out, deleted, each person's own alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.test import Client

from tests.webapp.rows import World
from webapp import mailing
from webapp.notices.models import Sending, Subscription

pytestmark = pytest.mark.django_db
PAGE = "/accounts/notices/"
HOOK = {"way": "webhook", "url": "http://127.0.0.1:9/planted", "scope": "mine", "kinds": ["ended", "spike"]}


@pytest.fixture(autouse=True)
def allowed(settings: Any) -> None:
    settings.WEBHOOK_PRIVATE, settings.EMAIL_HOST = True, "mail.example.org"


def test_it_works(world: World, page: Client) -> None:
    assert "You are told of nothing yet" in page.get(PAGE).content.decode()
    made = page.post(PAGE, HOOK).content.decode()
    row = Subscription.objects.get()
    assert row.secret in made
    shown = page.get(PAGE).content.decode()
    assert "http://127.0.0.1:9/…" in shown
    assert row.secret not in shown
    assert "planted" not in made + shown
    assert row.site == "http://testserver"
    for _ in range(2):
        assert page.post(f"{PAGE}{row.pk}/test").status_code == 302
    assert Sending.objects.get().body["link"] == "http://testserver/accounts/notices/"
    assert "on its way" in page.get(f"{PAGE}part").content.decode()
    assert page.post(f"{PAGE}{row.pk}/delete").status_code == 302
    assert Subscription.objects.count() == Sending.objects.count() == 0


def test_from_a_run_s_page_it_is_about_that_run(world: World, page: Client) -> None:
    run = world.running().run
    assert f"{PAGE}?run={run.pk}" in page.get(f"/runs/{run.pk}/").content.decode()
    assert f'value="{run.pk}"' in page.get(f"{PAGE}?run={run.pk}").content.decode()
    mail = {"way": "email", "address": "ada@example.org", "scope": "run", "run": run.pk, "kinds": ["ended"]}
    assert "Run 1: " in page.post(PAGE, mail).content.decode().replace(f"Run {run.pk}</a>", "Run 1")
    assert Subscription.objects.get().run == run


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": ""}, "url"), ({"url": "ftp://h/planted"}, "url"), ({"url": "http://169.254.169.254/planted"}, "url"),
        ({"kinds": []}, "kinds"), ({"kinds": ["gossip"]}, "kinds"), ({"scope": "run"}, "run"),
        ({"way": "pigeon"}, "way"),
        ({"scope": "run", "run": 99}, "run"), ({"scope": "run", "run": "x"}, "run"), ({"way": "email"}, "address"),
        ({"way": "email", "address": "ada"}, "address"),
    ],
)  # fmt: skip
def test_it_rejects(page: Client, changes: dict[str, Any], field: str) -> None:
    answer = page.post(PAGE, HOOK | changes)
    assert answer.status_code == 422
    assert f'data-field="{field}"' in answer.content.decode()
    assert Subscription.objects.count() == 0


def test_private_addresses_are_the_operators_to_allow(page: Client, settings: Any) -> None:
    settings.WEBHOOK_PRIVATE = False
    text = page.post(PAGE, HOOK).content.decode()
    assert "which is not public. The operator can allow private addresses" in text
    assert Subscription.objects.count() == 0


def test_without_a_mail_server_e_mail_is_not_offered(page: Client, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    text = page.get(PAGE).content.decode()
    assert "SHARDBOARD_EMAIL_URL" in text
    assert 'value="email"' not in text
    assert page.post(PAGE, HOOK | {"way": "email", "address": "ada@example.org"}).status_code == 422


def test_others_subscriptions_are_not_found(page: Client, client: Client) -> None:
    page.post(PAGE, HOOK)
    row = Subscription.objects.get()
    client.force_login(User.objects.create(username="eve"))
    for act in ("test", "delete"):
        assert client.post(f"{PAGE}{row.pk}/{act}").status_code == 404
    assert "127.0.0.1" not in client.get(PAGE).content.decode()


def test_the_admin_reads_them_without_secrets_and_ends_them(page: Client) -> None:
    page.post(PAGE, HOOK)
    row = Subscription.objects.get()
    page.post(f"{PAGE}{row.pk}/test")
    for name in ("notice", "watch", "subscription", "sending"):
        assert page.get(f"/admin/notices/{name}/", {"q": "a"}).status_code == 200
    text = page.get(f"/admin/notices/subscription/{row.pk}/change/").content.decode()
    assert "http://127.0.0.1:9/…" in text
    assert row.sealed_secret not in text
    page.post("/admin/notices/subscription/", {"action": "unsubscribe", "_selected_action": [row.pk]})
    assert Subscription.objects.count() == 0


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://h", mailing.Mail("h", 25)),
        ("smtp+starttls://u:p%40x@h", mailing.Mail("h", 587, "u", "p@x", tls=True)),
        ("smtps://u@h:2465", mailing.Mail("h", 2465, "u", ssl=True)),
        *(
            (url, mailing.Mail())
            for url in ("", "h:25", "http://h", "smtp://", "smtp://h:0", "smtp://h:x", "smtp://h/x")
        ),
    ],
)
def test_a_mail_server_s_address(url: str, server: mailing.Mail, settings: Any) -> None:
    assert mailing.parse(url) == server
    settings.EMAIL_URL, settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = url, server.host, "s@example.org"
    assert ("webapp.E005" in [message.id for message in run_checks()]) is (bool(url) and not server.host)
