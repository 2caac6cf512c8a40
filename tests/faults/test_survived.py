"""What a run survives, of the fault matrix; `make prove-faults` plays all of it and writes docs/faults.md."""

from __future__ import annotations

import pytest

from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack

from . import every
from .case import CASES, play
from .field import Field

pytestmark = [pytest.mark.e2e, pytest.mark.root]
# The others of their kind take the same ways, or much longer.
PLAYED = (
    "worker_killed", "follower_killed", "web_killed", "redis_killed", "sshd_killed", "link_down_for_a_moment",
    "delivered_again", "stopped_while_running",
)  # fmt: skip


@pytest.fixture(scope="module")
def field(stack: Stack, openssh: list[SshHost]) -> Field:
    return Field(stack, "openssh", openssh)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_survives(field: Field, name: str) -> None:
    record = play(CASES[name], field)
    assert record.good, record


def test_every_case_has_a_name_and_a_place_of_its_own() -> None:
    assert len({case.done for case in every.EVERY}) == len(every.EVERY)
