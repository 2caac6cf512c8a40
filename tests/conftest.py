"""What any test may use: a private Redis, a private PostgreSQL, a started service and OpenSSH hosts beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import halves, postgres
from tests.e2e.enlist import enlisted
from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack
from training.spec.ports import free_port
from workers.local import broker

# How long an example takes says how busy the machine is, and nothing of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--half", choices=["rows", "rest"], help="see tests/halves.py")


@pytest.hookimpl(wrapper=True)  # pytest-xdist reads the groups, and pytest-django sorts, in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Say which tests stay in one process when several run: those of the started service, those of the site that
    browsers look at, and those that read one session's launches; all others stay together by file. Real ranks take
    longest, so they come before the rest.
    """
    if half := config.getoption("half"):
        items[:] = halves.chosen(items, half)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    yield
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    for marker in ("e2e", "browser"):
        if item.get_closest_marker(marker):
            return marker
    return "attempts" if "attempts" in getattr(item, "fixturenames", ()) else item.location[0]


def _turn(item: pytest.Item) -> int:
    group = _group(item)
    if group in ("e2e", "attempts"):
        return 0 if group == "e2e" else 1
    return 2 if item.get_closest_marker("ranks") else 3


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of this session's own, started as the launcher starts one."""
    import redis

    folder: Path = tmp_path_factory.mktemp("redis")
    config = broker.configure(folder, free_port("127.0.0.1"))
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


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One started service for all end-to-end tests: whoever takes a part of it away brings it back."""
    stack = Stack(tmp_path_factory.mktemp("stack"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def openssh(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SshHost]]:
    """Cluster `openssh`: two hosts with addresses and disks of their own. Fails where this machine can't have any."""
    with enlisted(stack, "openssh", tmp_path_factory.mktemp("openssh")) as hosts:
        yield hosts
