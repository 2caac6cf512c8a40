"""Messages reach a real HTTP server and a real mail server on loopback, once, and what does not is tried again."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import socket
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.webapp.rows import World
from training.spec.faults import Reason
from webapp.notices import telling
from webapp.notices.kinds import ENDED, Kind
from webapp.notices.models import Sending, Subscription
from webapp.notices.subscribing import subscribe
from webapp.runs.states import RunState
from workers.end import finish
from workers.notices import sending, webhook
from workers.notices.webhook import NotSent, Post

from .conftest import Watched
from .receiver import MailServer, Receiver, serving

pytestmark = pytest.mark.django_db
SITE = "https://train.example.org/"


def to_hook(user: User, url: str, scope: str = "all", kinds: tuple[str, ...] = (ENDED, Kind.NON_FINITE)) -> str:
    said = {"way": "webhook", "url": url, "scope": scope, "run": None, "kinds": list(kinds)}
    return subscribe(user, said, SITE)[1]


def test_it_works(watched: Watched, receiver: Receiver) -> None:
    """A NaN, its end, and the end of the run: three signed messages, each once however often it is looked."""
    user, last = watched.feed.run.owner, watched.steady()
    assert user is not None
    secret = to_hook(user, receiver.url())
    watched.feed.metrics(math.nan, after=last)
    watched.look()
    watched.feed.metrics(*[2.0] * 130, after=last + 1)
    watched.look()
    watched.look()
    watched.feed.end(RunState.FAILED, reason=Reason.NON_FINITE, text="the loss was NaN, see ../rows.jsonl.")
    for _ in range(2):
        sending.send_due()
    told = [json.loads(body) for _, _, body in receiver.got]
    run = watched.feed.run.pk
    assert [(one["event"], one["kind"], one["run"], one["link"]) for one in told] == [
        (event, kind, run, f"https://train.example.org/runs/{run}/")
        for event, kind in (("begins", "non_finite"), ("is over", "non_finite"), ("failed", "ended"))
    ]
    assert told[2]["text"] == "The run failed at step 171 of 1000: the loss was NaN, see ../rows.jsonl."
    path, headers, body = receiver.got[0]
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert (path, headers["x-shardboard-signature"]) == ("/hook?token=planted", f"sha256={mac}")
    assert headers["x-shardboard-message"] == str(told[0]["id"])
    assert Sending.objects.waiting().count() == 0


def test_a_failure_that_restarts_by_itself_is_told_as_that(world: World, receiver: Receiver) -> None:
    run = world.running(limits={"restarts": 1}).run
    to_hook(world.user, receiver.url())
    for _ in range(2):
        run.refresh_from_db()
        assert run.attempt is not None
        finish.fail(run, run.attempt, Reason.RANK_FAILED, "node beta: boom")
    sending.send_due()
    said = {told["event"]: told["text"] for told in (json.loads(body) for _, _, body in receiver.got)}
    assert set(said) == {"restarts", "failed"}
    assert "node beta: boom. It goes on by itself: restarted 1 of 1 afresh" in said["restarts"]
    assert "by itself" not in said["failed"]


def test_only_what_was_asked_for_by_whom(watched: Watched, receiver: Receiver) -> None:
    user, eve = watched.feed.run.owner, User.objects.create(username="eve")
    gone = User.objects.create(username="gone", is_active=False)
    assert user is not None
    to_hook(user, receiver.url("/mine"), "mine")
    to_hook(user, receiver.url("/ended"), "mine", (ENDED,))
    to_hook(eve, receiver.url("/eve-mine"), "mine")
    to_hook(eve, receiver.url("/eve-all"))
    to_hook(gone, receiver.url("/gone"))
    subscribe(eve, {"way": "webhook", "url": receiver.url("/one"), "scope": "run", "run": watched.feed.run.pk,
                    "kinds": ["non_finite"]}, SITE)  # fmt: skip
    watched.feed.metrics(math.nan)
    watched.look()
    sending.send_due()
    assert sorted(path for path, _, _ in receiver.got) == ["/eve-all", "/mine", "/one"]


def test_a_server_that_fails_and_comes_back(world: Any, receiver: Receiver, page: Client) -> None:
    to_hook(world.user, receiver.url())
    row, now = telling.test(Subscription.objects.get()), timezone.now()
    receiver.answers = [500, 302]
    sending.send_due(now)
    sending.send_due(now + timedelta(seconds=14))
    row.refresh_from_db()
    assert (row.tries, row.problem, row.settled) == (1, "it answered 500", False)
    assert "Tried 1 of 8 times" in page.get("/accounts/notices/").content.decode()
    sending.send_due(now + timedelta(seconds=16))
    row.refresh_from_db()
    assert row.problem == "it answered 302: redirects are not followed"
    assert [path for path, _, _ in receiver.got] == ["/hook?token=planted"] * 2
    sending.send_due(now + timedelta(seconds=100))
    row.refresh_from_db()
    assert (row.tries, row.problem, row.sent_at is not None) == (3, "", True)
    assert len({body for _, _, body in receiver.got}) == 1, "each try says the same"


def test_eight_tries_and_then_the_page_says_so(world: Any, receiver: Receiver, page: Client) -> None:
    to_hook(world.user, receiver.url())
    row, now = telling.test(Subscription.objects.get()), timezone.now()
    receiver.answers = [503] * 99
    for hours in range(12):
        sending.send_due(now + timedelta(hours=8 * hours))
    row.refresh_from_db()
    assert (row.tries, len(receiver.got), row.given_up_at is not None) == (8, 8, True)
    shown = page.get("/accounts/notices/").content.decode()
    assert "given up" in shown
    assert "it answered 503" in shown
    assert "PLANTED" not in shown


def test_a_sender_that_dies_and_two_at_once(world: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    to_hook(world.user, receiver.url())
    telling.test(Subscription.objects.get())
    now = timezone.now()

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sending, "_all", killed)
        with pytest.raises(KeyboardInterrupt):
            sending.send_due(now)
    sending.send_due(now + timedelta(seconds=60))
    assert receiver.got == [], "it may still be at it"
    rows = [Sending.objects.get() for _ in range(2)]
    assert [sending._claim(row, now + timedelta(seconds=121)) for row in rows] == [True, False]
    sending.send_due(now + timedelta(seconds=300))
    assert len(receiver.got) == 1


def test_what_is_a_month_old_is_forgotten_also_where_nobody_is_told_of_it(world: Any, receiver: Receiver) -> None:
    gone, now = User.objects.create(username="gone"), timezone.now()
    for user in (world.user, gone):
        to_hook(user, receiver.url())
    mine, theirs = Subscription.objects.all()
    telling.test(mine)
    telling.test(theirs)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    sending.send_due(now + timedelta(days=29))
    assert Sending.objects.count() == 2
    later = now + timedelta(days=31)
    Sending.objects.filter(pk=telling.test(mine).pk).update(made_at=later)
    sending.send_due(later)
    assert Sending.objects.get().made_at == later
    assert len(receiver.got) == 2


def post(url: str, *, private: bool = True, seconds: float = 60.0) -> str:
    """Return why a message to `url` was not sent."""
    with pytest.raises(NotSent) as caught:
        asyncio.run(webhook.send(Post(url, "secret", b"{}", 1), private=private, seconds=seconds))
    return str(caught.value)


def test_the_address_is_judged_when_it_is_sent(receiver: Receiver) -> None:
    assert "not public" in post(receiver.url(), private=False)
    assert "which is no server's" in post("http://169.254.169.254/latest")
    assert receiver.got == []


def test_the_judged_address_is_connected_to_and_the_name_not_asked_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere from the second look on (case S6) leads there in vain."""
    asked, looked_up = [], socket.getaddrinfo

    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        if host == "hooks.example.org":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return looked_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    url = f"http://hooks.example.org:{receiver.port}/"
    asyncio.run(webhook.send(Post(url, "secret", b"{}", 1), private=True))
    assert len(asked) == 1
    assert [headers["host"] for _, headers, _ in receiver.got] == [f"hooks.example.org:{receiver.port}"]


def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where IPv6 is dropped on the way: here by a socket whose queue is full."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, receiver.port)) for host in ("127.0.0.2", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(webhook, "AN_ADDRESS", 0.3)
    with socket.create_server(("127.0.0.2", receiver.port), backlog=0), ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", receiver.port))
        asyncio.run(webhook.send(Post(receiver.url(), "secret", b"{}", 1), private=True))
    assert len(receiver.got) == 1


def test_one_that_trickles_does_not_hold_the_others_up(receiver: Receiver) -> None:
    receiver.silent = True
    assert post(receiver.url(), seconds=0.3) == "no answer in 0 s"


def test_what_does_not_speak_http_or_is_not_there() -> None:
    mail = MailServer()
    with serving(mail):
        assert post(f"http://127.0.0.1:{mail.port}/") == "what answers there speaks no HTTP"
        assert "TLS" in post(f"https://127.0.0.1:{mail.port}/")
    assert "no connection: Connection refused" in post(f"http://127.0.0.1:{mail.port}/")


def test_secrets_are_sealed(world: Any, receiver: Receiver, settings: Any) -> None:
    secret = to_hook(world.user, receiver.url())
    row = Subscription.objects.get()
    assert (row.url, row.secret, row.where) == (receiver.url(), secret, f"http://127.0.0.1:{receiver.port}/…")
    assert not any(text in str(Subscription.objects.values()) for text in ("planted", secret))
    telling.test(row)
    settings.SECRET_KEY = "another " * 8
    sending.send_due()
    assert "sealed with another SHARDBOARD_SECRET_KEY" in Sending.objects.get().problem
