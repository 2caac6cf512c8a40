"""The whole site served by uvicorn on a free port of loopback, in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


class Server(uvicorn.Server):
    """Says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config):
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()


@contextmanager
def served() -> Iterator[str]:
    """Yield the address once it answers. Rows are shared through the database, so it must be one on disk."""
    from webapp.asgi import application

    server = Server(uvicorn.Config(application, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.settled.wait(60)
        assert server.started
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
