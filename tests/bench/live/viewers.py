"""Viewers without a browser: python -m tests.bench.live.viewers URL COOKIE RUN...

Opens the socket of each run's page and takes what comes as webapp/static/link.js does, until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys

from websockets.asyncio.client import connect


async def main(url: str, cookie: str, runs: list[str]) -> None:
    watching = [asyncio.create_task(watch(url, cookie, run)) for run in runs]
    await asyncio.to_thread(sys.stdin.read)
    for task in watching:
        task.cancel()


async def watch(url: str, cookie: str, run: str) -> None:
    address = f"{url.replace('http', 'ws', 1)}/ws/runs/{run}/"
    async with connect(address, origin=url, additional_headers={"Cookie": cookie}, max_size=None) as socket:  # type: ignore[arg-type]
        await socket.send(json.dumps({"after": 0, "acks": True}))
        print("open", flush=True)
        async for text in socket:
            if (cursor := json.loads(text).get("cursor")) is not None:
                await socket.send(json.dumps({"seen": cursor}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
