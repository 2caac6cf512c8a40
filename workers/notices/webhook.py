"""POST a message to a webhook: signed, to an address that was judged, within ten seconds, no redirect followed.

Written on asyncio's streams: clients that are there look a name up once more when they connect, so that it could lead
elsewhere than to the address that was judged, and none ends an answer that trickles in for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass

from training.spec.lint import Refused
from webapp.notices import addresses
from webapp.notices.addresses import Target

SECONDS = 10.0
AN_ADDRESS = 3.0  # seconds until the next address is tried: IPv6 that is dropped on the way must not take all the time
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?:\s|$)")


class NotSent(Exception):
    """A message did not arrive; the text says why, and never what the other side answered."""


@dataclass(frozen=True)
class Post:
    """`number`: the same for each try of one message, by which a receiver knows that it comes again."""

    url: str
    secret: str
    body: bytes
    number: int


def signature(secret: str, body: bytes) -> str:
    """HMAC with SHA-256 of the body's bytes (RFC 2104), in hex behind `sha256=`."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


async def send(post: Post, *, private: bool, seconds: float = SECONDS) -> None:
    """Send it; raise NotSent where the answer is anything but 2xx, or there is none in time."""
    try:
        async with asyncio.timeout(seconds):
            target = addresses.parse(post.url)
            found = await asyncio.to_thread(addresses.resolve, target, private=private)
            status = await _ask(target, found, post)
    except TimeoutError:
        raise NotSent(f"no answer in {seconds:.0f} s") from None
    except Refused as refused:
        raise NotSent(str(refused)) from None
    except ssl.SSLError as error:
        raise NotSent(f"no TLS with it: {error.reason or error}") from None
    except (OSError, ValueError) as error:  # ValueError: a line without an end
        number = getattr(error, "errno", None)
        raise NotSent(f"no connection: {os.strerror(number) if number else type(error).__name__}") from None
    if not 200 <= status < 300:
        raise NotSent(f"it answered {status}{': redirects are not followed' if 300 <= status < 400 else ''}")


async def _ask(target: Target, found: list[str], post: Post) -> int:
    """Return the status of the answer, of which nothing else is read."""
    reader, writer = await _connect(target, found)
    try:
        writer.write(_request(target, post))
        await writer.drain()
        match = STATUS.match(await reader.readline())
        if match is None:
            raise NotSent("what answers there speaks no HTTP")
        return int(match[1])
    finally:
        writer.transport.abort()


async def _connect(target: Target, found: list[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that takes it."""
    context = ssl.create_default_context() if target.scheme == "https" else None
    name = target.host if context else None
    for address in found[:-1]:
        with suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(AN_ADDRESS):
                return await asyncio.open_connection(address, target.port, ssl=context, server_hostname=name)
    return await asyncio.open_connection(found[-1], target.port, ssl=context, server_hostname=name)


def _request(target: Target, post: Post) -> bytes:
    lines = (
        f"POST {target.path} HTTP/1.1",
        f"Host: {target.authority}",
        "User-Agent: Shardboard",
        "Content-Type: application/json",
        f"Content-Length: {len(post.body)}",
        f"X-Shardboard-Message: {post.number}",
        f"X-Shardboard-Signature: {signature(post.secret, post.body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + post.body
