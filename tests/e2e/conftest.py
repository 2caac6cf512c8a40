"""One started service for all end-to-end tests, and two OpenSSH hosts beside its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from .browser import chromium
from .person import Person
from .ssh_hosts import SshHost, ssh_hosts
from .stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def openssh(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SshHost]]:
    """Cluster `openssh`: two hosts with addresses and disks of their own. Fails where this machine can't have any."""
    folder = tmp_path_factory.mktemp("openssh")
    key = stack.manage("make_identity", "openssh").strip().splitlines()[-1]
    with ssh_hosts(folder, key) as hosts:
        for host in hosts:
            pinned = folder / f"{host.name}.pub"
            pinned.write_text(host.host_key + "\n")
            stack.manage(
                "add_node", "openssh", host.name, "--address", host.address, "--user", "root", "--identity", "openssh",
                "--python", sys.executable, "--scratch", "/scratch", "--cpu", "--interface", "eth0",
                "--host-key", str(pinned),
            )  # fmt: skip
        yield hosts


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a file: while Playwright is up its event loop runs, and no asynchronous test can run its own."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def person(page: Page, stack: Stack) -> Person:
    person = Person(page, stack.url)
    person.log_in()
    return person
