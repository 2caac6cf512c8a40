"""The real processes, worker, beat and follower: a worker killed with signal 9 while it launches.

What is killed while a run trains, and Redis, are cases of tests/faults.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as conf
from django.db import connection

from tests.workers.world import ROOT, World, stored_equals_written
from webapp import dispatch
from webapp.runs import heartbeat
from webapp.runs.models import Run
from workers.local import broker

LIMIT = 240.0
COMMANDS = {
    "worker": ("celery", "-A", "workers.app", "worker", "--concurrency", "2", "--loglevel", "warning"),
    "beat": ("celery", "-A", "workers.app", "beat", "--loglevel", "warning", "--schedule"),
    "follower": ("workers.follow",),
}


class Service:
    """The processes of the service, on this test's database and Redis."""

    def __init__(self, folder: Path, datasets: Path, redis_url: str):
        self.folder, self.children = folder, {}
        database = connection.settings_dict
        url = f"sqlite:///{database['NAME']}"
        if connection.vendor == "postgresql":
            url = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**database)
        self.environment = os.environ | {
            "SHARDBOARD_DATABASE_URL": url,
            "SHARDBOARD_REDIS_URL": redis_url,
            "SHARDBOARD_STATE": str(datasets.parent),
            "SHARDBOARD_SECRET_KEY": str(conf.SECRET_KEY),
        }
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        words = list(COMMANDS[name]) + ([str(self.folder / "beat")] if name == "beat" else [])
        with (self.folder / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(
                [sys.executable, "-m", *words], cwd=ROOT, env=self.environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """End a part and all its processes without a word."""
        os.killpg(self.children[name].pid, signal.SIGKILL)
        self.children.pop(name).wait()

    def finish(self) -> None:
        for name in list(self.children):
            self.kill(name)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path / "redis")
    yield server
    server.stop()


class Redis:
    """A Redis of this test's own, that can be taken away."""

    def __init__(self, folder: Path):
        from training.spec.ports import free_port

        folder.mkdir()
        self.folder, self.config = folder, broker.configure(folder, free_port("127.0.0.1"))
        self.url = broker.url_file(folder).read_text("utf-8").strip()
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([broker.binary(), str(self.config)], stdout=log, stderr=log)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def service(world: World, redis: Redis, settings: Any, tmp_path: Path) -> Iterator[Service]:
    settings.REDIS_URL = redis.url
    dispatch._producer.cache_clear()
    heartbeat._redis.cache_clear()
    service = Service(tmp_path, world.datasets, redis.url)
    for name in COMMANDS:
        service.start(name)
    yield service
    service.finish()
    dispatch._producer.cache_clear()
    heartbeat._redis.cache_clear()


def wait(run: Run, condition: Callable[[Run], Any], service: Service) -> None:
    limit = time.monotonic() + LIMIT
    while True:
        run.refresh_from_db()
        if condition(run):
            return
        logs = "\n".join(f.read_text("utf-8", "replace")[-1500:] for f in sorted(service.folder.glob("*.log")))
        assert time.monotonic() < limit, f"{run.state} {run.reason_text}\n{logs}"
        time.sleep(0.1)


def test_a_worker_killed_while_it_launches_leaves_no_orphan(world: World, service: Service) -> None:
    world.behave(steps=20, pace=0.1)
    run = world.run()
    wait(run, lambda r: r.state in ("preparing", "starting"), service)
    service.kill("worker")
    service.start("worker")
    wait(run, lambda r: r.has_ended, service)
    assert (run.state, run.reason) == ("succeeded", "completed"), run.reason_text
    assert world.supervisors() == []
    stored_equals_written(run)
