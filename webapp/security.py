"""Headers that keep a page to its own code, and a record of sockets from foreign pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import ParseResult

from channels.security.websocket import OriginValidator
from django.conf import settings
from django.http import HttpRequest, HttpResponse

log = logging.getLogger(__name__)

# No inline script anywhere; inline style is needed by charts and progress bars.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self' ws: wss:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


class ContentSecurityPolicy:
    """Set the policy on every answer that has none of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


class LoggingOriginValidator(OriginValidator):
    """Refuse a socket of a foreign page before it is accepted, and say so in the log."""

    def valid_origin(self, parsed_origin: ParseResult | None) -> bool:
        valid = super().valid_origin(parsed_origin)
        if not valid:
            origin = parsed_origin.geturl() if parsed_origin else "none"
            log.warning("websocket refused: its Origin is %.200r; allow it in SHARDBOARD_HOSTS if it is yours", origin)
        return valid


def allowed_origins_only(application: Any) -> LoggingOriginValidator:
    """Return `application` behind the check of Origin against ALLOWED_HOSTS."""
    return LoggingOriginValidator(application, settings.ALLOWED_HOSTS)
