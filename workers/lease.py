"""One worker at a time on one attempt, checkpoint, preflight, provisioning or job of one node: its row.

Whoever comes while it is held sets `due_at`, so that the holder, or the sweep after it, looks once more.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone

from webapp.fleet.models import Provision
from webapp.preflights.models import Preflight
from webapp.runs.models import Attempt, Checkpoint, NodeJob

SECONDS = 30.0
RENEWALS = 3  # a lease is renewed this often before it would run out
log = logging.getLogger(__name__)
Row = Attempt | Checkpoint | NodeJob | Preflight | Provision


@contextmanager
def hold(row: Row) -> Iterator[bool]:
    """Yield True where the lease is ours until the block ends; False where another holds it."""
    owner = uuid.uuid4().hex
    if not _take(row, owner):
        _same(row).update(due_at=timezone.now())
        yield False
        return
    done = threading.Event()
    renewing = threading.Thread(target=_renew, args=(row, owner, done), daemon=True)
    renewing.start()
    try:
        yield True
    finally:
        done.set()
        renewing.join()
        _release(row, owner)


def _release(row: Row, owner: str) -> None:
    """Give the lease back, due again before long: a step that raised, or whose process died here, asked for no look."""
    ours = _same(row).filter(lease_owner=owner)
    ours.update(due_at=Least("due_at", Value(timezone.now() + AGAIN)), lease_owner="", lease_until=None)


def free() -> Q:
    """Rows that nobody holds, or whose holder has gone silent."""
    return Q(lease_until=None) | Q(lease_until__lt=timezone.now())


def due_in(row: Row, seconds: float) -> bool:
    """Have `row` looked at again in `seconds`, or sooner where that was asked meanwhile; return True if it is due."""
    due = timezone.now() + timedelta(seconds=seconds)
    _same(row).filter(due_at__gt=due).update(due_at=due)
    return _same(row).filter(due_at__lte=timezone.now()).exists()


def _same(row: Row) -> QuerySet[Row]:
    return type(row)._default_manager.filter(pk=row.pk)


def _take(row: Row, owner: str) -> bool:
    until = timezone.now() + timedelta(seconds=SECONDS)
    taken = _same(row).filter(free()).update(lease_owner=owner, lease_until=until, due_at=timezone.now() + FAR)
    row.refresh_from_db()
    return taken == 1


FAR = timedelta(hours=1)  # the sweep looks after a lease that ran out, whatever is due
AGAIN = timedelta(seconds=60)  # no step asks for a later look


def _renew(row: Row, owner: str, done: threading.Event) -> None:
    try:
        while not done.wait(SECONDS / RENEWALS):
            try:
                until = timezone.now() + timedelta(seconds=SECONDS)
                _same(row).filter(lease_owner=owner).update(lease_until=until)
            except DatabaseError as error:
                log.warning("lease of %s not renewed, tried again soon: %s", row, error)
    finally:
        connection.close()
