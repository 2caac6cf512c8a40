"""Viewers without a browser: python -m tests.bench.live.viewers URL COOKIE RUN...

Each opens the socket of its run's page, takes what comes and asks for the parts that have changed, as the page does
(webapp/static/link.js and live.js), until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

import httpx
from websockets.asyncio.client import connect

EVERY = {"progress": 5.0, "header": 1.0, "memory": 2.0}  # seconds between two refreshes; others: 0.3
PARTS = {"progress": "header"}


class Parts:
    """Asks for the parts of a page; for the first time at some moment, since no two runs begin at the same."""

    def __init__(self, client: httpx.AsyncClient, run: str):
        self._client, self._run = client, run
        self._rests: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        self._rests["header"] = asyncio.create_task(asyncio.sleep(random.uniform(0, EVERY["progress"])))

    def refresh(self, reason: str) -> None:
        """Ask for what has changed, unless it is not time yet: then with the next change."""
        name = PARTS.get(reason, reason)
        if name not in self._rests or self._rests[name].done():
            self._rests[name] = asyncio.create_task(self._ask(name, EVERY.get(reason, 0.3)))

    async def _ask(self, name: str, rest: float) -> None:
        (await self._client.get(f"/runs/{self._run}/part/{name}")).raise_for_status()
        await asyncio.sleep(rest)


async def main(url: str, cookie: str, runs: list[str]) -> None:
    headers = {"Cookie": cookie}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        watching = [asyncio.create_task(watch(url, headers, run, Parts(client, run))) for run in runs]
        await asyncio.to_thread(sys.stdin.read)
        for task in watching:
            task.cancel()


async def watch(url: str, headers: dict[str, str], run: str, parts: Parts) -> None:
    address = f"{url.replace('http', 'ws', 1)}/ws/runs/{run}/"
    async with connect(address, origin=url, additional_headers=headers, max_size=None) as socket:  # type: ignore[arg-type]
        await socket.send(json.dumps({"after": 0, "acks": True}))
        print("open", flush=True)
        seen = 0
        async for text in socket:
            batch = json.loads(text)
            if "cursor" not in batch:
                continue  # a heartbeat
            seen += 1
            if seen == 2:  # what came first was there when the page was made
                parts.begin()
            for reason in batch["changed"] if seen > 1 else ():
                parts.refresh(reason)
            await socket.send(json.dumps({"seen": batch["cursor"]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
