"""Whether the service as a whole answers: site, database, Redis and a worker. Needs no token, tells no secret."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router, Schema
from redis import Redis
from redis.exceptions import RedisError

from webapp.runs import heartbeat

router = Router(tags=["health"])
PATIENCE = 2.0  # seconds for Redis to answer


class HealthOut(Schema):
    """`missing`: what does not answer, of database, redis and worker."""

    ok: bool
    missing: list[str]


@router.get("/healthz", auth=None, response={200: HealthOut, 503: HealthOut}, operation_id="health")
def health(request: HttpRequest) -> HttpResponse:
    """200 once site, database, Redis and a worker answer; 503 with what is missing otherwise."""
    return healthz(request)


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    missing = _missing()
    return JsonResponse({"ok": not missing, "missing": missing}, status=503 if missing else 200)


def _missing() -> list[str]:
    """A worker's sign of life lies in Redis: without Redis there is no telling."""
    database = [] if _database() else ["database"]
    try:
        Redis.from_url(settings.REDIS_URL, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE).ping()
        return database + ([] if heartbeat.alive() else ["worker"])
    except (RedisError, OSError):
        return [*database, "redis", "worker"]


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True
