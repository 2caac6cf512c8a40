"""What is to be sent to whom: rows, made in the transaction of what they tell of, so that none is lost or doubled."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from webapp import dispatch
from webapp.runs.models import Run, Transition
from webapp.runs.states import RunState

from .kinds import ENDED
from .models import Notice, Sending, Subscription

BEGINS, OVER = "begins", "is over"


def of_notice(notice: Notice, event: str) -> None:
    """Tell that a notice begins, or is over by itself."""
    began = notice.lasted_from.isoformat(timespec="seconds")
    said = {"text": notice.text, "advice": notice.advice, "key": notice.key, "figure": notice.figure, "since": began}
    _tell(notice.run, notice.kind, f"notice:{notice.pk}:{event}", {"event": event, "label": notice.label} | said)


def of_end(move: Transition) -> None:
    """Tell that a run ended, in the transaction that moves it."""
    run = Run.objects.get(pk=move.run_id)
    text = f"The run {move.new} at step {run.step} of {run.total_steps}"
    if run.reason_text and move.new != "succeeded":
        text += f": {run.reason_text.rstrip('.')}"
    _tell(run, ENDED, _end_key(move), {"event": move.new, "label": move.new, "text": f"{text}."})


def of_restart(move: Transition) -> None:
    """Say in what tells of the failure that the run goes on by itself; in the transaction of the failure itself."""
    failed = Transition.objects.filter(run=move.run_id, new=RunState.FAILED).latest("pk")
    for row in Sending.objects.waiting().filter(key=_end_key(failed), tries=0):
        text = f"{row.body['text']} It goes on by itself: {move.cause}."
        row.body |= {"event": "restarts", "label": "failed, restarts by itself", "text": text}
        row.save(update_fields=["body"])


def _end_key(move: Transition) -> str:
    return f"end:{move.pk}"


def test(subscription: Subscription) -> Sending:
    """Send something that is no news, to see whether it arrives."""
    text = "This is a test of a subscription: nothing has happened."
    body = {"kind": "test", "event": "test", "label": "test", "run": None, "name": "", "text": text}
    link = f"{subscription.site}/accounts/notices/"
    made = Sending.objects.create(
        subscription=subscription, key=f"test:{uuid.uuid4().hex}", body=body | {"link": link}
    )  # fmt: skip
    dispatch.send_notices()
    return made


def _tell(run: Run, kind: str, key: str, said: dict[str, Any]) -> None:
    body = {"kind": kind, "run": run.pk, "name": run.name} | said
    rows = [
        Sending(subscription=to, key=key, body=body | {"link": f"{to.site}{run.get_absolute_url()}"})
        for to in _wanting(run, kind)
    ]
    Sending.objects.bulk_create(rows, ignore_conflicts=True)
    if rows:
        dispatch.send_notices()


def _wanting(run: Run, kind: str) -> Iterable[Subscription]:
    mine = Q(scope=Subscription.Scope.MINE, user=run.owner_id) if run.owner_id else Q(pk=None)
    rows = Subscription.objects.filter(Q(run=run) | Q(scope=Subscription.Scope.ALL) | mine, user__is_active=True)
    return [row for row in rows if kind in row.kinds]
