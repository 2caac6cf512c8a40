"""A browser's end of a websocket, without a network."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

PATIENCE = 30.0  # seconds; a hang is a failure, speed is not tested here


class Visitor(ApplicationCommunicator):
    """Talks ASGI's websocket messages to the whole application."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]):
        scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers, "subprotocols": []}
        super().__init__(application, scope)

    async def connect(self) -> tuple[bool, int]:
        """Return whether the socket was accepted, and the code it was closed with where not."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(PATIENCE)
        return answer["type"] == "websocket.accept", answer.get("code", 0)

    async def send(self, message: Any) -> None:
        await self.send_text(json.dumps(message))

    async def send_text(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def text(self) -> str:
        answer = await self.receive_output(PATIENCE)
        assert answer["type"] == "websocket.send", answer
        return str(answer["text"])

    async def closed(self) -> int:
        answer = await self.receive_output(PATIENCE)
        assert answer["type"] == "websocket.close", answer
        return int(answer["code"])

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE)
