"""Whether the service as a whole answers: site, database, Redis and workers. Needs no token, tells no secret."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router, Schema

from webapp.runs import heartbeat

router = Router(tags=["health"])


class HealthOut(Schema):
    """`missing`: what does not answer, of database, redis, worker and follower."""

    ok: bool
    missing: list[str]


@router.get("/healthz", auth=None, response={200: HealthOut, 503: HealthOut}, operation_id="health")
def health(request: HttpRequest) -> HttpResponse:
    """200 once site, database, Redis and the workers answer; 503 with what is missing otherwise."""
    return healthz(request)


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    missing = [name for name, alive in ({"database": _database()} | heartbeat.alive()).items() if not alive]
    return JsonResponse({"ok": not missing, "missing": missing}, status=503 if missing else 200)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True
