"""Sockets of the site."""

from __future__ import annotations

from typing import Any

from django.urls import path, re_path

from .consumers import UNKNOWN_RUN, RunConsumer


async def nowhere(scope: Any, receive: Any, send: Any) -> None:
    """Refuse a socket at an address that is none: the router alone would end in an error."""
    await send({"type": "websocket.close", "code": UNKNOWN_RUN})


websocket_urlpatterns = [
    path("ws/runs/<int:run_id>/", RunConsumer.as_asgi()),
    re_path("", nowhere),  # type: ignore[arg-type]  # an application, as channels' router takes
]
