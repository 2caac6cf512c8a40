"""The same Idempotency-Key gives the same run, whatever happened to the first answer on its way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from webapp.runs.models import IdempotencyKey, Run

from .finders import user_of
from .problems import Stop

HEADER = "Idempotency-Key"
LONGEST = 200


def once(request: HttpRequest, body: dict[str, Any], make: Callable[[], Run]) -> tuple[Run, bool]:
    """Return (run, made now?). Without the header, `make` runs every time.

    Run and key are committed together, so of two requests at once one makes the run and the other finds it.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return make(), True
    _check(key)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    if (held := _held(user_of(request), key, digest)) is not None:
        return held, False
    try:
        with transaction.atomic():
            run = make()
            IdempotencyKey.objects.create(user=user_of(request), key=key, body=digest, run=run)
    except IntegrityError:
        if (held := _held(user_of(request), key, digest)) is not None:
            return held, False
        raise
    return run, True


def _check(key: str) -> None:
    if not key or len(key) > LONGEST or not key.isprintable():
        raise Stop(400, HEADER, f"it needs 1 to {LONGEST} printable characters", "Send a UUID, for example.")


def _held(user: User, key: str, digest: str) -> Run | None:
    row = IdempotencyKey.objects.select_related("run").filter(user=user, key=key).first()
    if row is None:
        return None
    if row.body != digest:
        raise Stop(409, HEADER, f"it was used for another request, which made run {row.run_id}", "Send a new key.")
    return row.run
