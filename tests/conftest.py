"""What any test may use: a private Redis, a private PostgreSQL."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from workers.local import broker


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests stay in one process when several run: the started service and real ranks are shared.

    Those two groups take longest, so they come first; all other tests stay together by file.
    """
    heavy = ("e2e", "ranks")
    for item in items:
        group = next((name for name in heavy if item.get_closest_marker(name)), item.location[0])
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: next((i for i, name in enumerate(heavy) if item.get_closest_marker(name)), len(heavy)))


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of this session's own, started as the launcher starts one."""
    import redis

    folder: Path = tmp_path_factory.mktemp("redis")
    config = broker.configure(folder, free_port())
    url = broker.url_file(folder).read_text("utf-8").strip()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([broker.binary(), str(config)], stdout=log, stderr=subprocess.STDOUT)
    try:
        retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 400)
        with redis.Redis.from_url(url, retry=retry, retry_on_error=[redis.ConnectionError]) as client:
            client.ping()
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL of this session's own. Where none is installed the test fails and says so."""
    with postgres.server() as url:
        yield url
