"""The files of pages, sent before Django: a run page asks for thirty, each of which took 5 ms of a thread on its way.

WhiteNoise finds and describes them; of its middleware only the way through Django's requests is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from .security import POLICY

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
SECURE = [  # as pages have them of Django and ours
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Statics:
    """Answers with a file where the path is one's, else as `pages` does."""

    def __init__(self, pages: Callable[[Scope, Receive, Send], Awaitable[None]]):
        self.pages = pages
        self.found = WhiteNoiseMiddleware()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self._file(scope["path"])
        if file is None:
            await self.pages(scope, receive, send)
            return
        answer = file.get_response(scope["method"], _asked(scope))
        headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": int(answer.status), "headers": headers + SECURE})
        await send({"type": "http.response.body", "body": _body(answer.file)})

    def _file(self, path: str) -> StaticFile | None:
        return self.found.find_file(path) if self.found.autorefresh else self.found.files.get(path)


def _asked(scope: Scope) -> dict[str, str]:
    """Return a request's headers as WhiteNoise reads them."""
    return {
        "HTTP_" + name.decode().upper().replace("-", "_"): value.decode("latin-1") for name, value in scope["headers"]
    }


def _body(file: Any) -> bytes:
    if file is None:
        return b""
    with file:
        return bytes(file.read())
