"""A preflight that a person asked for: every node for itself first, its cells filled in as its answers come; then what
is between them. A node that is away or hangs is cells of its own; the others are looked at without it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError
from django.utils import timezone

from training.spec.lint import Problem
from webapp.fleet.models import Claim, Node
from webapp.fleet.ssh import Host, SshError, connect
from webapp.preflights.checks import SLUGS
from webapp.preflights.models import Preflight

from .. import lease
from ..group import Answer, Member
from ..launch import release
from . import alone, cells, clock, ports, signature, steps, storage
from .asked import Question, ask, keep, problems
from .finding import Finding, Findings, bad, nothing
from .node import member_of

log = logging.getLogger(__name__)
LIMIT = timedelta(minutes=10)  # after which a preflight that was broken off again and again is given up
NO_RUN = nothing("no run is asked about")
Put = Callable[[int, Findings], Awaitable[None]]  # a node's key, and what was found


def advance(preflight_id: int) -> None:
    """Make the preflight, unless another does so now, or it is over."""
    row = Preflight.objects.filter(pk=preflight_id).first()
    if row is None or row.ended_at:
        return
    with lease.hold(row) as held:
        if not held or row.ended_at:
            return
        if timezone.now() > row.asked_at + LIMIT:
            cells.close(row)
        else:
            _make(row)


def _make(row: Preflight) -> None:
    nodes = Node.objects.filter(cells__preflight=row).distinct().select_related("identity")
    members = [member_of(node, rank) for rank, node in enumerate(nodes.order_by("name"))]
    held = _held(nodes)

    async def put(node_id: int, findings: Findings) -> None:
        await sync_to_async(cells.fill)(row, node_id, findings)

    try:
        cells.close(row, signature=async_to_sync(examine)(members, put, held))
    except OperationalError:
        raise  # the database is away or busy: the sweep comes back
    except Exception as error:  # a bug of ours is told, and leaves no page that waits for ever
        log.exception("preflight %s", row.pk)
        why = f"an unexpected error of the service: {type(error).__name__}: {error}"
        cells.close(row, Problem("preflight", why, "See the worker's log."))


def _held(nodes: Iterable[Node]) -> dict[str, str]:
    """Return {name: the runs that hold GPUs there}."""
    found: dict[str, dict[int, str]] = {}
    for claim in Claim.objects.filter(node__in=nodes).select_related("node", "attempt"):
        found.setdefault(claim.node.name, {})[claim.attempt.run_id] = f"run #{claim.attempt.run_id}"
    return {name: " and ".join(runs.values()) for name, runs in found.items()}


async def examine(members: Sequence[Member], put: Put, held: Mapping[str, str]) -> str:
    """Look at all nodes; return the signature of their state where every port was open, else an empty text.

    `held`: by name, what holds a node's GPUs now.
    """
    async with AsyncExitStack() as stack:
        hosts = await _connected(members, put, stack)
        token = secrets.token_hex(8)
        facts = await _asked([m for m in members if m.rank in hosts], members, hosts, put, token, held)
        there = [m for m in members if m.name in facts]
        try:
            return await _between(there, hosts, facts, put, token)
        finally:
            await steps.forget(there, hosts, token)


async def _connected(members: Sequence[Member], put: Put, stack: AsyncExitStack) -> dict[int, Host]:
    """Return rank -> host of those that let us in."""

    async def one(member: Member) -> Host | None:
        try:
            host = await stack.enter_async_context(connect(member.endpoint))
            await put(member.node_id, clock.findings(await clock.look(host)))
            return host
        except SshError as error:
            rest = alone.without("the node was not reached", [slug for slug in SLUGS if slug != "reach"])
            await put(member.node_id, {"reach": bad(error.problem)} | rest)
            await sync_to_async(keep)(member.node_id, {}, [error.problem])
            return None

    found = await asyncio.gather(*map(one, members))
    return {member.rank: host for member, host in zip(members, found, strict=True) if host}


async def _asked(
    there: Sequence[Member],
    members: Sequence[Member],
    hosts: Mapping[int, Host],
    put: Put,
    token: str,
    held: Mapping[str, str],
) -> dict[str, Answer]:
    """Return by name what each node says of itself; those that say nothing are left out."""

    async def one(member: Member) -> Answer | None:
        peers = [other.slot.address for other in members if other is not member]
        try:
            host = hosts[member.rank]
            await host.put_tree(str(member.scratch.release(member.release)), release.current().files)
            facts = await ask(member, host, Question("", True, peers, steps.token_of(token, member)))
        except SshError as error:
            rest = [*alone.ONE_NODE, "model", *steps.BETWEEN]
            failed = {error.field if error.field in SLUGS else "python": bad(error.problem)}
            await put(member.node_id, alone.without("the node did not answer", rest) | failed)
            await sync_to_async(keep)(member.node_id, {}, [error.problem])
            return None
        await put(member.node_id, _told(member, facts, held.get(member.name)))
        await sync_to_async(keep)(member.node_id, facts, problems(member, facts))
        return facts if "versions" in facts else None

    found = await asyncio.gather(*map(one, there))
    return {member.name: facts for member, facts in zip(there, found, strict=True) if facts}


def _told(member: Member, facts: Answer, holder: str | None) -> Findings:
    found = alone.findings(member, facts) | {"model": NO_RUN}
    if holder and "versions" in facts:
        found["idle"] = nothing(f"held by {holder}")
    if "versions" not in facts:
        found |= alone.without("the node has not said what it has", steps.BETWEEN)
    return found


async def _between(
    members: Sequence[Member], hosts: Mapping[int, Host], facts: Mapping[str, Answer], put: Put, token: str
) -> str:
    if len(members) < 2:
        for member in members:
            await put(member.node_id, dict.fromkeys(steps.BETWEEN, steps.ONE_NODE))
        return ""
    keys = {member.name: member.node_id for member in members}
    for name, differing in steps.compared(facts).items():
        await put(keys[name], differing)
    await _put(put, keys, "storage", await _storage(members, hosts, token))
    ways, told = steps.ways(members, facts)
    for name, finding in told.items():
        await put(keys[name], finding)
    for name in keys.keys() - ways.keys():
        await put(keys[name], alone.without("no interface leads to the others", ["ports"]))
    with_way = [member for member in members if member.name in ways]
    answers = await ports.look(with_way, hosts, ways, facts, token)
    found = ports.findings(answers)
    await _put(put, keys, "ports", found)
    whole = len(with_way) == len(members) and not _any_bad(found.values())
    return signature.of(members, ways, facts) if whole else ""


async def _storage(members: Sequence[Member], hosts: Mapping[int, Host], token: str) -> dict[str, Finding]:
    try:
        return storage.findings(await steps.seen(members, hosts, token))
    except SshError as error:
        return {member.name: bad(error.problem) for member in members}


async def _put(put: Put, keys: Mapping[str, int], check: str, found: Mapping[str, Finding]) -> None:
    for name, finding in found.items():
        await put(keys[name], {check: finding})


def _any_bad(found: Iterable[Finding]) -> bool:
    return any(finding.state == "problem" for finding in found)
