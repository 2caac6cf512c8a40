"""A preflight that a person asked for: every node for itself first, its cells filled in as its answers come; then what
is between them. A node that is away or hangs is cells of its own; the others are looked at without it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError
from django.utils import timezone

from training.spec.lint import Problem
from webapp.fleet.models import Claim, Node
from webapp.fleet.ssh import Host, SshError, connect
from webapp.preflights.checks import SLUGS
from webapp.preflights.models import Preflight, State

from .. import lease
from ..group import Answer, Member
from ..launch import release
from . import allreduce, alone, cells, clock, ports, signature, steps, storage
from .asked import Question, ask, keep, problems
from .finding import Finding, Findings, bad, nothing
from .interface import Way
from .node import member_of

log = logging.getLogger(__name__)
LIMIT = timedelta(minutes=10)  # after which one is given up, be it at work or broken off again and again
TELL_SECONDS = 30.0  # of them, for telling what the trials of pairs have found
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
    left = (row.asked_at + LIMIT - timezone.now()).total_seconds()

    async def put(node_id: int, findings: Findings) -> None:
        await sync_to_async(cells.fill)(row, node_id, findings)

    try:
        cells.close(row, signature=async_to_sync(Look(members, put, held, left).examine)())
    except OperationalError:
        raise  # the database is away or busy: the sweep comes back
    except TimeoutError:
        cells.close(row)
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


@dataclass
class Look:
    """`held`: by name, what is at work on a node now; `seconds`: how long it may take. `hosts` and `facts` come with
    the answers, `pairs_until` with the beginning.
    """

    members: Sequence[Member]
    put: Put
    held: Mapping[str, str]
    seconds: float
    asked_at: datetime = field(default_factory=timezone.now)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    hosts: dict[int, Host] = field(default_factory=dict)
    facts: dict[str, Answer] = field(default_factory=dict)
    pairs_until: float = 0.0

    async def examine(self) -> str:
        """Look at all nodes; return the signature of their state where every port was open, else an empty text.

        Raises TimeoutError; what was found by then has been put.
        """
        self.pairs_until = asyncio.get_running_loop().time() + self.seconds - TELL_SECONDS
        async with asyncio.timeout(self.seconds), AsyncExitStack() as stack:
            await asyncio.gather(*(self._alone(member, stack) for member in self.members))
            there = [member for member in self.members if member.name in self.facts]
            self.facts = {member.name: self.facts[member.name] for member in there}  # not as they came in
            try:
                return await self._between(there)
            finally:
                await steps.forget(there, self.hosts, self.token)

    async def _alone(self, member: Member, stack: AsyncExitStack) -> None:
        """Ask one node for itself."""
        try:
            host = await stack.enter_async_context(connect(member.endpoint))
            await self.put(member.node_id, clock.findings(await clock.look(host)))
        except SshError as error:
            rest = alone.without("the node was not reached", [slug for slug in SLUGS if slug != "reach"])
            await self._lost(member, error, rest | {"reach": bad(error.problem)})
            return
        try:
            await release.put(host, member.slot.scratch)
            facts = await ask(member, host, self._question(member))
        except SshError as error:
            failed = {error.field if error.field in SLUGS else "python": bad(error.problem)}
            rest = alone.without("the node did not answer", [*alone.ONE_NODE, "model", *steps.BETWEEN])
            await self._lost(member, error, rest | failed)
            return
        await self.put(member.node_id, self._told(member, facts))
        await sync_to_async(keep)(member, self.asked_at, facts, problems(member, facts))
        if "versions" in facts:
            self.hosts[member.rank], self.facts[member.name] = host, facts

    async def _lost(self, member: Member, error: SshError, findings: Findings) -> None:
        await self.put(member.node_id, findings)
        await sync_to_async(keep)(member, self.asked_at, {}, [error.problem])

    def _question(self, member: Member) -> Question:
        peers = [other.slot.address for other in self.members if other is not member]
        return Question("", True, peers, steps.token_of(self.token, member))

    def _told(self, member: Member, facts: Answer) -> Findings:
        found = alone.findings(member, facts) | {"model": NO_RUN}
        if "versions" not in facts:
            return found | alone.without("the node has not said what it has", steps.BETWEEN)
        if holder := self.held.get(member.name):
            found["idle"] = nothing(f"held by {holder}")
        return found

    async def _between(self, there: Sequence[Member]) -> str:
        if len(there) < 2:
            await self._put(steps.between(there, steps.ONE_NODE))
            return ""
        await self._put(steps.compared(self.facts))
        await self._put_one("storage", await self._storage(there))
        ways, told = steps.ways(there, self.facts)
        await self._put(told)
        lost = [member for member in there if member.name not in ways]
        nowhere = alone.without("no interface leads to the others", ["ports", "allreduce"])
        await self._put({member.name: nowhere for member in lost})
        found = await self._network([member for member in there if member.name in ways], ways)
        whole = len(there) == len(self.members) and not lost
        return signature.of(there, ways, self.facts) if whole and not _any_bad(found.values()) else ""

    async def _network(self, members: Sequence[Member], ways: Mapping[str, Way]) -> dict[str, Finding]:
        """Try every connection, then an all-reduce of the nodes where nothing is at work; return what ports said."""
        found = ports.findings(await ports.look(members, self.hosts, ways, self.facts, self.token))
        await self._put_one("ports", found)
        free = {member.name: member for member in members if member.name not in self.held}
        busy = {m.name: nothing(f"{self.held[m.name]} is at work there") for m in members if m.name in self.held}
        await self._put_one("allreduce", busy | await self._added(free, ways, found))
        return found

    async def _added(
        self, free: Mapping[str, Member], ways: Mapping[str, Way], opened: Mapping[str, Finding]
    ) -> dict[str, Finding]:
        if len(free) < 2:
            return dict.fromkeys(free, nothing("no other node is free for it"))
        if _any_bad(opened.values()):  # torch would wait for what can't come
            return dict.fromkeys(free, allreduce.BLOCKED)
        return await allreduce.look(allreduce.Nodes(free, self.hosts, ways, self.facts), self.pairs_until)

    async def _storage(self, there: Sequence[Member]) -> dict[str, Finding]:
        try:
            return storage.findings(await steps.seen(there, self.hosts, self.token))
        except SshError as error:
            return {member.name: bad(error.problem) for member in there}

    async def _put_one(self, check: str, found: Mapping[str, Finding]) -> None:
        await self._put({name: {check: finding} for name, finding in found.items()})

    async def _put(self, found: Mapping[str, Findings]) -> None:
        keys = {member.name: member.node_id for member in self.members}
        for name, findings in found.items():
            await self.put(keys[name], findings)


def _any_bad(found: Iterable[Finding]) -> bool:
    return any(finding.state == State.PROBLEM for finding in found)
