"""What runs: every process of a whole Shardboard on this machine, as one command each."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from . import broker
from .children import Child
from .place import Place
from .ports import HOST, private_ports

NODES = ("node-a", "node-b")
WORKER_THREADS = 4


@dataclass(frozen=True)
class Stack:
    """`base` carries the rest: it starts first and ends last."""

    base: tuple[Child, ...]
    service: tuple[Child, ...]
    web_port: int
    ports: dict[str, int]

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.web_port}"


def build(place: Place, web_port: int) -> Stack:
    """Choose the private ports, write Redis' configuration and return what to start."""
    ports = private_ports(place, ("redis", *NODES))
    redis = Child("redis", tuple(broker.command(place, ports["redis"])))
    nodes = (_node(place, name, ports[name]) for name in NODES)
    return Stack((redis, *nodes), (web(web_port), _worker(), _follower(), _beat(place)), web_port, ports)


def _module(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def _node(place: Place, name: str, port: int) -> Child:
    where = ("--port", str(port), "--state", str(place.node(name)))
    return Child(name, _module("workers.local.hosts", *where, "--authorized-keys", str(place.authorized_keys)))


def web(port: int) -> Child:
    # Live pages hold their sockets open for ever: a stop must not wait for them. What they get is small and often:
    # to deflate it took a twentieth of the processor, and some 300 kB a page.
    return Child(
        "web",
        _module(
            "uvicorn", "webapp.asgi:application", "--host", HOST, "--port", str(port), "--no-access-log",
            "--timeout-graceful-shutdown", "3", "--ws-per-message-deflate", "false",
        ),
    )  # fmt: skip


def _celery(*words: str) -> tuple[str, ...]:
    return _module("celery", "-A", "workers.app", *words)


def _worker() -> Child:
    threads = str(WORKER_THREADS)
    return Child("worker", _celery("worker", "--pool", "threads", "--concurrency", threads, "--loglevel", "INFO"))


def _follower() -> Child:
    return Child("follower", _module("workers.follow"))


def _beat(place: Place) -> Child:
    return Child("beat", _celery("beat", "--schedule", str(place.beat), "--pidfile", "", "--loglevel", "INFO"))
