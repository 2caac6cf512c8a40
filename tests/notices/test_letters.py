"""What is sent as an e-mail, to a real mail server on loopback."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from webapp.notices import telling
from webapp.notices.kinds import ENDED
from webapp.notices.models import Sending, Subscription
from webapp.notices.subscribing import subscribe
from workers.notices import sending

from .conftest import Watched
from .receiver import MailServer, Receiver, serving

pytestmark = pytest.mark.django_db
SITE = "https://train.example.org/"


def to_mail(user: User) -> Subscription:
    said = {"way": "email", "address": "ada@example.org", "scope": "all", "run": None, "kinds": [ENDED, "non_finite"]}
    return subscribe(user, said, SITE)[0]


@pytest.fixture
def mail(settings: Any) -> Iterator[MailServer]:
    found = MailServer()
    with serving(found):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.DEFAULT_FROM_EMAIL = "shardboard@example.org"
        yield found


def test_a_letter(watched: Watched, mail: MailServer) -> None:
    assert watched.feed.run.owner is not None
    to_mail(watched.feed.run.owner)
    watched.feed.metrics(math.nan)
    watched.look()
    sending.send_due()
    (letter,) = mail.letters
    assert "Subject: [Shardboard] watched (run" in letter
    assert "To: ada@example.org" in letter
    assert "From: shardboard@example.org" in letter
    for said in ("The loss is NaN at step 1.", "Lower the learning rate", f"{SITE}runs/", f"{SITE}accounts/notices/"):
        assert said in letter.replace("=\r\n", "").replace("=3D", "=")


def test_a_mail_server_that_refuses_or_is_away(world: Any, mail: MailServer, settings: Any) -> None:
    mail.refuse = "550 no such person"
    row, now = telling.test(to_mail(world.user)), timezone.now()
    sending.send_due(now)
    row.refresh_from_db()
    assert row.problem == "the mail server does not take mail to this address"
    for host, problem in (("127.0.0.1", "no mail server: "), ("", "no mail server is set up")):
        settings.EMAIL_HOST, settings.EMAIL_PORT = host, 1
        now += timedelta(hours=8)
        sending.send_due(now)
        row.refresh_from_db()
        assert row.problem.startswith(problem)


def test_a_letter_that_can_not_be_made_holds_nothing_up(
    world: Any, mail: MailServer, receiver: Receiver, settings: Any
) -> None:
    settings.DEFAULT_FROM_EMAIL = "shardboard@"
    letter = telling.test(to_mail(world.user))
    said = {"way": "webhook", "url": receiver.url(), "scope": "all", "run": None, "kinds": [ENDED]}
    hook = telling.test(subscribe(world.user, said, SITE)[0])
    sending.send_due()
    for row in (letter, hook):
        row.refresh_from_db()
    assert (hook.sent_at is not None, letter.tries, letter.sent_at) == (True, 1, None)
    assert "SHARDBOARD_EMAIL_FROM" in letter.problem


def test_many_letters_go_at_once(world: Any, mail: MailServer, settings: Any) -> None:
    """A mail server that takes its time keeps none waiting for a thread: more at once than Python's own pool has."""
    mail.together, settings.EMAIL_TIMEOUT = 33, 60
    for _ in range(mail.together):
        telling.test(to_mail(world.user))
    sending.send_due()
    assert (len(mail.letters), Sending.objects.waiting().count()) == (33, 0)
