"""The same Idempotency-Key gives the same run or export, whatever happened to the first answer on its way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from webapp.runs.models import Export, IdempotencyKey, Run

from .finders import user_of
from .problems import Stop

HEADER = "Idempotency-Key"
LONGEST = 200
Made = TypeVar("Made", Run, Export)


def once(request: HttpRequest, body: dict[str, Any], make: Callable[[], Made]) -> tuple[Made, bool]:
    """Return (what was made, now?). Without the header, `make` runs every time. `body` also says what is made.

    What is made and its key are committed together, so of two requests at once one makes it and the other finds it.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return make(), True
    _check(key)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    if (held := _held(user_of(request), key, digest)) is not None:
        return cast(Made, held), False
    try:
        with transaction.atomic():
            made = make()
            row = {"run": made.run, "export": made} if isinstance(made, Export) else {"run": made}
            IdempotencyKey.objects.create(user=user_of(request), key=key, body=digest, **row)
    except IntegrityError:
        if (held := _held(user_of(request), key, digest)) is not None:
            return cast(Made, held), False
        raise
    return made, True


def _check(key: str) -> None:
    if not key or len(key) > LONGEST or not key.isprintable():
        raise Stop(400, HEADER, f"it needs 1 to {LONGEST} printable characters", "Send a UUID, for example.")


def _held(user: User, key: str, digest: str) -> Run | Export | None:
    row = IdempotencyKey.objects.select_related("run", "export").filter(user=user, key=key).first()
    if row is None:
        return None
    if row.body != digest:
        what = f"export {row.export_id}" if row.export_id else f"run {row.run_id}"
        raise Stop(409, HEADER, f"it was used for another request, which made {what}", "Send a new key.")
    return row.export or row.run
