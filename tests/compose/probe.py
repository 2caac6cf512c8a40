"""What a browser and a CI job do, from inside the stack: log in, use the API, watch a run over its socket.

Fed to the web container's Python by check.sh, with TOKEN and DJANGO_SUPERUSER_PASSWORD in the environment.
"""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

import websockets

HOST = "127.0.0.1:8000"
SITE = f"http://{HOST}"
LIMIT = 120.0


class Browser:
    """Keeps cookies, follows redirects."""

    def __init__(self) -> None:
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def cookie(self, name: str) -> str:
        return next((c.value or "" for c in self.jar if c.name == name), "")

    def log_in(self, password: str) -> str:
        """Return the address that log-in leads to."""
        self.opener.open(f"{SITE}/login/", timeout=10)
        form = {"username": "admin", "password": password, "csrfmiddlewaretoken": self.cookie("csrftoken")}
        request = urllib.request.Request(f"{SITE}/login/", urllib.parse.urlencode(form).encode())
        return self.opener.open(request, timeout=10).url


def api(method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """Return status and JSON of one call."""
    headers = {"Authorization": f"Bearer {token or os.environ['TOKEN']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{SITE}/api/v1{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def until(what: str, look: Callable[[], Any]) -> Any:
    """Return the first true value that `look` gives; fail naming `what` after LIMIT seconds."""
    end, seen = time.monotonic() + LIMIT, None
    while time.monotonic() < end:
        if seen := look():
            return seen
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {LIMIT:.0f} s")


def launch() -> int:
    order = {
        "name": "refused",
        "preset": "tiny",
        "model": "base",
        "dataset": "sums",
        "cluster": "check",
        "launch": True,
    }
    status, run = api("POST", "/runs", order)
    assert status == 201, (status, run)
    run_id: int = run["id"]
    return run_id


async def watch(run_id: int, session: str) -> int:
    """Follow the run over its socket until it has failed; return the cursor of the last batch."""
    headers = {"Cookie": f"sessionid={session}"}
    async with asyncio.timeout(LIMIT):
        address = f"ws://{HOST}/ws/runs/{run_id}/"
        async with websockets.connect(address, additional_headers=headers, origin=SITE) as socket:
            await socket.send(json.dumps({"after": 0}))
            while True:
                cursor: int = json.loads(await socket.recv())["cursor"]
                _, run = await asyncio.to_thread(api, "GET", f"/runs/{run_id}")
                if run["state"] == "failed" and cursor == last_event(run_id):
                    return cursor


def last_event(run_id: int) -> int:
    events = api("GET", f"/runs/{run_id}/events?after=0")[1]["items"]
    return max(event["seq"] for event in events)


async def refused(run_id: int, session: str, origin: str) -> int:
    """Return the status that the handshake is refused with."""
    headers = {"Cookie": f"sessionid={session}"}
    try:
        async with websockets.connect(f"ws://{HOST}/ws/runs/{run_id}/", additional_headers=headers, origin=origin):
            return 101
    except websockets.InvalidStatus as error:
        return error.response.status_code


def main() -> None:
    browser = Browser()
    assert "/login" in browser.log_in("not the password")
    assert "/runs" in browser.log_in(os.environ["DJANGO_SUPERUSER_PASSWORD"])
    print("logged in")

    assert api("GET", "/runs", token="sb_wrong")[0] == 401
    status, clusters = api("GET", "/clusters")
    assert status == 200, clusters
    (node,) = next(c["nodes"] for c in clusters["items"] if c["name"] == "check")
    problem = until("the check of the node", lambda: api("GET", f"/nodes/{node['id']}")[1]["problem"])
    assert "torch" in problem, problem
    print(f"the node is refused: {problem}")

    run_id, session = launch(), browser.cookie("sessionid")
    assert asyncio.run(refused(run_id, session, "https://evil.example")) == 403
    cursor = asyncio.run(watch(run_id, session))
    run = api("GET", f"/runs/{run_id}")[1]
    assert (run["state"], run["reason"]) == ("failed", "preflight"), run
    assert "torch" in json.dumps(run), run
    print(f"run {run_id} failed by {run['reason']}; the socket brought its {cursor} events")


main()
