"""The follower as a process of its own, with a private Redis; its processor time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import redis

from tests.postgres import server
from training.spec.ports import free_port
from workers.local import broker


@contextmanager
def database(postgres: bool) -> Iterator[None]:
    """Set the database of this process and those it starts: a private PostgreSQL, or SQLite in the state folder."""
    if not postgres:
        yield
        return
    with server() as url:
        os.environ["SHARDBOARD_DATABASE_URL"] = url
        yield


@contextmanager
def private_redis(folder: Path) -> Iterator[None]:
    folder.mkdir()
    config = broker.configure(folder, free_port("127.0.0.1"))
    url = broker.url_file(folder).read_text("utf-8").strip()
    process = subprocess.Popen([broker.binary(), str(config)], stdout=subprocess.DEVNULL)
    try:
        retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 400)
        with redis.Redis.from_url(url, retry=retry, retry_on_error=[redis.ConnectionError]) as client:
            client.ping()
        os.environ["SHARDBOARD_REDIS_URL"] = url
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


@dataclass
class Cost:
    """Of a process: the share of one processor between `begin` and `end`, the most resident memory in bytes."""

    process: psutil.Process
    share: float = 0.0
    memory: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        self.process.cpu_percent()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def end(self) -> None:
        self.share = self.process.cpu_percent() / 100
        self._over.set()
        self._watching.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.memory = max(self.memory, self.process.memory_info().rss)


@contextmanager
def follower(log: Path) -> Iterator[psutil.Process]:
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "workers.follow"], stdout=file, stderr=file)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=60)
