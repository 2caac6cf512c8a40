"""The grid on demand: filled in as answers come, whoever is away; and what a launch takes from it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from tests.workers.world import World
from webapp import dispatch
from webapp.fleet.models import Node
from webapp.preflights import actions
from webapp.preflights.models import Cell, Preflight, State
from workers import advance, group, sweep
from workers.preflight import allreduce, demand
from workers.preflight.finding import Finding
from workers.preflight.interface import Way
from workers.preflight.node import member_of


def asked(world: World) -> Preflight:
    return actions.ask(world.cluster, "ada")


def cell(row: Preflight, check: str, node: str) -> Cell:
    return row.cells.get(check_name=check, node__name=node)


def made(world: World) -> Preflight:
    row = asked(world)
    demand.advance(row.pk)
    row.refresh_from_db()
    assert row.ended_at
    assert not row.cells.filter(state=State.WAITING).exists()
    return row


def test_every_check_of_every_node_has_a_word(world: World) -> None:
    Node.objects.filter(name="n1").update(interface="docker0")
    row = made(world)
    assert {found.state for found in row.cells.filter(check_name__in=["reach", "clock", "python", "storage"])} == {"ok"}
    assert "lo (127.0.0.1), by the route to" in cell(row, "interface", "n0").text
    assert "there is no docker0" in cell(row, "interface", "n1").text
    assert cell(row, "interface", "n1").fix
    assert cell(row, "gpus", "n0").state == "nothing"
    assert Node.objects.get(name="n0").facts["versions"]["torch"]
    assert not list((world.folder / "n0" / ".seen").iterdir())


def test_a_node_that_is_away_is_a_column_of_its_own(world: World) -> None:
    world.hosts[1].stop()
    row = made(world)
    assert cell(row, "reach", "n1").state == "problem"
    assert "firewall" in cell(row, "reach", "n1").fix
    assert "not reached" in cell(row, "disk", "n1").text
    assert cell(row, "disk", "n0").state == "ok"
    assert "no connection" in Node.objects.get(name="n1").problem


def test_asked_twice_and_delivered_twice_it_is_one(world: World) -> None:
    Node.objects.filter(name="n1").update(scratch=str(world.folder / "n0"))
    row = asked(world)
    assert asked(world).pk == row.pk
    both = [threading.Thread(target=demand.advance, args=(row.pk,)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    asks = [command for command in world.hosts[0].commands if " training preflight " in command]
    assert len(asks) == 1
    assert Preflight.objects.count() == 1
    assert cell(row, "storage", "n1").text == "shared by all nodes"


def test_one_that_got_lost_is_sent_again_and_one_without_end_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = asked(world)
    sent: list[tuple[str | int, ...]] = []
    monkeypatch.setattr(dispatch, "send", lambda *message: sent.append(message))
    for _ in range(2):
        sweep.sweep()
    assert sent.count((dispatch.PREFLIGHT, row.pk)) == 1
    Preflight.objects.update(asked_at=row.asked_at - 2 * demand.LIMIT)
    demand.advance(row.pk)
    assert "did not come to an end" in cell(row, "reach", "n0").text


def test_a_launch_chooses_the_interface_and_believes_open_ports_for_a_day(world: World) -> None:
    first, second = world.run(), world.run()
    world.drive(first, lambda r: r.state == "starting")
    (placement, _) = first.attempt.placements.all()
    assert placement.slot["interface"] == "lo"
    env = (world.folder / "n0" / "runs" / str(first.pk) / "1" / "node0" / "env").read_text()
    assert "GLOO_SOCKET_IFNAME=lo" in env
    assert "NCCL_SOCKET_IFNAME=lo" in env
    made = first.attempt.preflights.get()
    assert "both ways" in cell(made, "ports", "n0").text
    launch_again(world, first, second)
    assert "nothing has changed" in cell(second.attempt.preflights.get(), "ports", "n1").text
    third = world.run()
    Preflight.objects.update(ended_at=made.ended_at - timedelta(hours=25))
    launch_again(world, second, third)
    assert "both ways: n0" in cell(third.attempt.preflights.get(), "ports", "n1").text


def launch_again(world: World, over: object, run: object) -> None:
    """Free the nodes of one run, which has not started anything, and bring the other as far."""
    advance.finish.fail(over, over.attempt, advance.Reason.LAUNCH, "the test goes on")  # type: ignore[attr-defined]
    world.drive(run, lambda r: r.state == "starting" or r.has_ended)  # type: ignore[arg-type, attr-defined]
    assert run.state == "starting", run.reason_text  # type: ignore[attr-defined]


def test_a_node_that_hangs_holds_nobody_longer_than_the_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    Node.objects.filter(name="n1").update(python=script(world, "exec sleep 600"))
    monkeypatch.setattr(demand, "LIMIT", timedelta(seconds=1))
    assert "did not come to an end" in cell(made(world), "disk", "n1").text


def test_pairs_that_hang_are_not_tried_for_ever(world: World) -> None:
    world.add()
    with_all = '*free-port*) echo \'{"port": 1}\' ;; *--world\\ 3*) echo \'{"error": "no way"}\' ;;'
    Node.objects.update(python=script(world, f'case "$*" in {with_all} *) exec sleep 600 ;; esac'))
    members = [member_of(node, rank) for rank, node in enumerate(Node.objects.select_related("identity"))]

    async def look() -> dict[str, Finding]:
        async with AsyncExitStack() as stack:
            hosts = await group.connect_all(members, stack)
            ways = {member.name: Way("lo", "127.0.0.1") for member in members}
            nodes = allreduce.Nodes({m.name: m for m in members}, hosts, ways, {m.name: {} for m in members})
            return await allreduce.look(nodes, asyncio.get_running_loop().time() + 0.5)

    found = async_to_sync(look)()
    assert "(n0: no way); time was up before 3 of 3 pairs could be tried" in found["n1"].text


def script(world: World, text: str) -> str:
    path = world.folder / "hangs"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
