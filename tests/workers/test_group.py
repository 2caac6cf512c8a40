"""Connections to all nodes of a job: all of them, or none left open."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from asgiref.sync import async_to_sync

from tests.workers.world import World
from webapp.fleet.ssh import Unreachable
from webapp.runs.models import Run
from workers import group
from workers.group import Member


def members(world: World) -> list[Member]:
    run: Run = world.drive(world.run(), lambda r: r.state == "preparing")
    return group.of_attempt(run.attempt)


def test_one_that_cannot_be_reached_leaves_no_connection_to_the_others(world: World) -> None:
    nodes = members(world)
    world.hosts[0].stop()  # refused at once, while the other is still at its handshake

    async def connect() -> None:
        with pytest.raises(Unreachable, match="n0"):
            async with AsyncExitStack() as stack:
                await group.connect_all(nodes, stack)
        assert [t for t in asyncio.all_tasks() if "enter_async_context" in repr(t)] == []

    async_to_sync(connect)()
    assert len(world.hosts[1].connections) == 1


def test_all_are_connected_by_rank(world: World) -> None:
    nodes = members(world)

    async def names() -> dict[int, str]:
        async with AsyncExitStack() as stack:
            return {rank: host.name for rank, host in (await group.connect_all(nodes, stack)).items()}

    assert async_to_sync(names)() == {0: "n0", 1: "n1"}
