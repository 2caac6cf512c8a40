"""A real HTTP server and a real mail server on loopback, each in a thread of its own, that keep what they are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Receiver:
    """`answers`: statuses of the next posts, then 204. `got`: (path, headers by lower name, body) of each."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    silent: bool = False

    def url(self, path: str = "/hook?token=planted") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        if self.silent:
            writer.write(b"HTTP/1.1 2")  # and never the rest
            await writer.drain()
            await reader.read()
        else:
            self.got.append((head[0].split()[1], headers, body))
            status = self.answers.pop(0) if self.answers else 204
            writer.write(f"HTTP/1.1 {status} x\r\nLocation: /elsewhere\r\n\r\nPLANTED ANSWER".encode())
            await writer.drain()
        writer.close()


@dataclass
class MailServer:
    """Speaks as much SMTP (RFC 5321) as Django's client asks for. `refuse`: the answer to RCPT.

    `together`: so many have to have come before it says a word to any.
    """

    port: int = 0
    refuse: str = ""
    together: int = 1
    letters: list[str] = field(default_factory=list)
    _come: int = 0
    _enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._come += 1
        if self._come >= self.together:
            self._enough.set()
        await self._enough.wait()
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).decode().strip():
            word = line.split()[0].upper()
            if word == "DATA":
                writer.write(b"354 go on\r\n")
                self.letters.append((await reader.readuntil(b"\r\n.\r\n")).decode())
            answer = self.refuse if word == "RCPT" and self.refuse else "221 bye" if word == "QUIT" else "250 ok"
            writer.write(f"{answer}\r\n".encode())
            await writer.drain()
        writer.close()


@contextmanager
def serving(server: Receiver | MailServer) -> Iterator[None]:
    """Let it listen on a free port of loopback until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    listening = done(asyncio.start_server(server.serve, "127.0.0.1", 0))
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        listening.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
