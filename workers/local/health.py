"""Wait until what was started answers."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

from .ports import HOST

LOOK_SECONDS = 0.2


async def wait_for_port(port: int, limit: float = 60.0) -> None:
    """Return once something accepts connections; raise TimeoutError after `limit` seconds."""
    async with asyncio.timeout(limit):
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(LOOK_SECONDS)
            else:
                writer.close()
                return


async def wait_for_health(address: str, limit: float = 120.0) -> None:
    """Return once site, worker and Redis are well; raise TimeoutError with the last answer after `limit` seconds."""
    answer = "nothing yet"
    try:
        async with asyncio.timeout(limit):
            while True:
                well, answer = await asyncio.to_thread(_ask, f"{address}/healthz")
                if well:
                    return
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"{address}/healthz is not well after {limit:.0f} s: {answer}") from None


def _ask(url: str) -> tuple[bool, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own address
            return answer.status == 200, answer.read(2000).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return False, f"{error.code} {error.read(2000).decode('utf-8', 'replace')}"
    except OSError as error:
        return False, str(error)
