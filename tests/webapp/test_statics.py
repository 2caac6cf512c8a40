"""Files of pages as the started site sends them, beside its pages."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.conf import settings

SCRIPT = "/static/charts.js"


def answer(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body."""
    given = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in ({"host": "localhost"} | headers).items()
    ]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": given}

    async def ask() -> list[dict[str, Any]]:
        from webapp.asgi import application

        asked = ApplicationCommunicator(application, scope)
        await asked.send_input({"type": "http.request", "body": b""})
        return [await asked.receive_output(60), await asked.receive_output(60)]

    start, body = asyncio.run(ask())
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body["body"]


def test_a_file_is_sent_as_it_is() -> None:
    status, headers, body = answer(SCRIPT)
    assert (status, body) == (200, (settings.BASE_DIR / "webapp/static/charts.js").read_bytes())
    assert headers["content-type"].startswith("text/javascript")
    page = {name.lower(): value for name, value in answer("/static/none.js")[1].items()}
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy"):
        assert headers[name] == page[name], name


def test_a_file_that_a_browser_has_is_not_sent_again() -> None:
    _, headers, _ = answer(SCRIPT)
    assert "max-age=0" in headers["cache-control"], "but it asks: after an upgrade all are of one release"
    assert answer(SCRIPT, if_modified_since=headers["last-modified"])[::2] == (304, b"")


def test_part_of_a_file_and_its_headers_alone() -> None:
    status, _, body = answer(SCRIPT, range="bytes=3-5")
    assert (status, body) == (206, (settings.BASE_DIR / "webapp/static/charts.js").read_bytes()[3:6])
    assert answer(SCRIPT, "HEAD")[::2] == (200, b"")
    assert answer(SCRIPT, "POST")[0] == 405


def test_what_is_no_file_is_asked_of_the_pages() -> None:
    assert answer("/static/../settings.py")[0] == answer("/static/none.js")[0] == 404
