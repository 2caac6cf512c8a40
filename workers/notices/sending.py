"""Send what waits: all that is due at once, each tried at most eight times, and said on the page where it failed.

A try is claimed by raising `due_at` and counting it, so two workers never send one at once. One that dies after it has
sent and before it has said so sends again: the message has the same number then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from webapp import dispatch
from webapp.fleet.vault import WrongKey
from webapp.notices.models import Sending, Subscription
from webapp.notices.retries import pause

from . import letter, webhook
from .webhook import NotSent, Post

AT_ONCE = 50
LOST = timedelta(seconds=120)  # after which one whose sender died is tried again; no try takes as long
KEPT = timedelta(days=30)


def sweep(now: datetime) -> None:
    if Sending.objects.due(now).exists():
        dispatch.send(dispatch.SEND_NOTICES)


def send_due(now: datetime | None = None) -> None:
    """Send what is due now; forget what is old, be it that nobody is to be told of it any more."""
    now = now or timezone.now()
    rows = Sending.objects.due(now).select_related("subscription")[:AT_ONCE]
    claimed = [row for row in rows if _claim(row, now)]
    for row, problem in zip(claimed, asyncio.run(_all(claimed)), strict=True):
        _keep(row, problem, now)
    if claimed:
        Sending.objects.filter(made_at__lt=now - KEPT).delete()


def _claim(row: Sending, now: datetime) -> bool:
    same = Sending.objects.waiting().filter(pk=row.pk, tries=row.tries, due_at=row.due_at)
    row.tries += 1
    return bool(same.update(tries=row.tries, due_at=now + LOST))


async def _all(rows: Sequence[Sending]) -> list[str]:
    """Return why each did not arrive, empty where it did; they don't wait for each other, nor for a thread."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
    return await asyncio.gather(*(_one(row) for row in rows))


async def _one(row: Sending) -> str:
    to = row.subscription
    try:
        if to.way == Subscription.Way.EMAIL:
            await asyncio.to_thread(letter.send, to.address, row.body, to.site)
        else:
            body = json.dumps({"id": row.pk, **row.body}, ensure_ascii=False).encode()
            await webhook.send(Post(to.url, to.secret, body, row.pk), private=settings.WEBHOOK_PRIVATE)
    except (NotSent, WrongKey) as error:
        return str(error)[:300]
    return ""


def _keep(row: Sending, problem: str, now: datetime) -> None:
    """Write down what became of the try, unless another one has come since."""
    same = Sending.objects.waiting().filter(pk=row.pk, tries=row.tries)
    wait = pause(row.tries)
    if not problem:
        same.update(sent_at=now, problem="")
    elif wait is None:
        same.update(given_up_at=now, problem=problem)
    else:
        same.update(due_at=now + wait, problem=problem)
