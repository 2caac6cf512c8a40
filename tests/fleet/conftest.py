"""An SSH server that lets `loopback.IDENTITY` in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sshd import Sshd

from .loopback import IDENTITY


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    server = Sshd(IDENTITY.public)
    yield server
    server.finish()
