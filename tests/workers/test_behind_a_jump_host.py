"""A run on nodes that are reached through a jump host, over one connection to it."""

from __future__ import annotations

import getpass
from pathlib import Path

from tests.openssh import openssh
from tests.workers.world import Following, World, stored_equals_written
from webapp.fleet.models import Node


def test_a_run_trains_and_is_followed_through_it(world: World, following: Following, tmp_path: Path) -> None:
    with openssh(tmp_path / "gate", world.identity.public_key, MaxSessions=0) as gate:
        jump = Node.objects.create(
            cluster=world.cluster, name="gate", address="127.0.0.1", port=gate.port, user=getpass.getuser(),
            identity=world.identity, host_key=gate.host_key, python="/none", scratch="/none", in_service=False,
        )  # fmt: skip
        Node.objects.exclude(pk=jump.pk).update(jump=jump)
        run = world.run()
        world.behave(steps=3)
        world.to(run, "succeeded")
        stored_equals_written(run)
        assert gate.logins == 1
