"""Ask for pages, and take the time of each in ms."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

LISTS = [
    "/runs/",
    "/runs/?page=200",
    *(f"/runs/?sort={way}{name}" for name in ("number", "name", "step", "loss", "made", "ended") for way in ("", "-")),
    "/runs/?q=seed+77",
    "/runs/?state=failed&sort=loss",
    "/runs/?tag=sweep&sort=-loss",
    "/runs/?owner=ada",
    "/runs/?dataset=chat",
    "/runs/?owner=ada&model=m3&dataset=chat",
    "/runs/?archived=all",
]
WARM = 3  # requests of each address that don't count
# From navigation until the frame after the one in which the first row was there.
ROW = """new MutationObserver((_, watch) => {
  if (!document.querySelector('[data-testid="run-row"]')) return;
  watch.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.rowDrawn = performance.now(); }));
}).observe(document, { childList: true, subtree: true });"""


def comparison(runs: Sequence[int], x: str) -> str:
    return "/runs/compare/series.json?name=loss&x=" + x + "".join(f"&run={run}" for run in runs)


def through_client(session: str, times: int) -> list[float]:
    from django.test import Client

    client = Client(SERVER_NAME="127.0.0.1")
    client.cookies["sessionid"] = session
    return _taken(lambda address: client.get(address).status_code, LISTS, times)


def over_http(base: str, session: str, addresses: Sequence[str], times: int) -> list[float]:
    place = urlsplit(base)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=120)

    def ask(address: str) -> int:
        connection.request("GET", address, headers={"Cookie": f"sessionid={session}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    return _taken(ask, addresses, times)


def _taken(ask: Callable[[str], int], addresses: Sequence[str], times: int) -> list[float]:
    found: list[float] = []
    for number in range(-WARM, times):
        for address in addresses:
            began = time.perf_counter()
            status = ask(address)
            took = (time.perf_counter() - began) * 1000
            assert status == 200, f"{address}: {status}"
            if number >= 0:
                found.append(took)
    return found


def first_rows(base: str, session: str, times: int) -> list[float]:
    """Open the list in a browser, with a cache as a returning person's."""
    from tests.e2e.browser import chromium

    found = []
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": session, "url": base}])
        context.add_init_script(ROW)
        page = context.new_page()
        for number in range(-WARM, times):
            page.goto(f"{base}/runs/")
            page.wait_for_function("window.rowDrawn", timeout=60_000)
            if number >= 0:
                found.append(float(page.evaluate("window.rowDrawn")))
    return found
