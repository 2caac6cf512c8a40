"""The preflight before a launch: everything that is quick, over the connections that the launch has already.

Nodes whose ports were found open within a day, and that are as they were then, are believed; the all-reduce is made on
demand alone. docs/decisions/0029 says why.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from asgiref.sync import sync_to_async
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.forecast import Course
from training.spec.recipe import Recipe
from webapp.preflights.models import Preflight, State
from webapp.runs.models import Attempt

from ..end.ending import End
from ..group import Answer, Member
from ..launch import disk, fits
from . import allreduce, alone, cells, clock, differ, ports, signature, steps, storage
from .asked import Question, ask, keep, problems
from .finding import Finding, Findings, bad, nothing, ok
from .interface import Way


@dataclass(frozen=True)
class Asked:
    """What the run needs."""

    recipe: Recipe
    course: Course
    model: str


@dataclass(frozen=True)
class Passed:
    """`members`: with the interface chosen; `port`: free on the first node's address; `warnings`: to be told."""

    members: list[Member]
    port: int
    warnings: list[str]


async def before(attempt: Attempt, members: list[Member], hosts: steps.Hosts, asked: Asked) -> Passed:
    """Return what the launch goes on with; raise End listing every problem of every node, SshError where one is lost.

    What was found is a row for the page, also where the launch is refused; where a node is lost nothing is written.
    """
    token, asked_at = secrets.token_hex(8), timezone.now()
    facts, ticks = await _answers(members, hosts, asked, token)
    found: dict[str, Findings] = {name: clock.findings(tick) for name, tick in ticks.items()}
    told = {m.name: _of_node(members, m, facts[m.name], asked) for m in members}
    for member in members:
        own = problems(member, facts[member.name])
        await sync_to_async(keep)(member, asked_at, facts[member.name], own)
        found[member.name] |= told[member.name]
    texts = [f"node {name}: {finding.sentence}" for name, said in told.items() for finding in _bad(said)]
    network = await _network(members, hosts, facts, token)
    for name, more in [*network.found.items(), *steps.compared(facts).items()]:
        found[name] |= more
    await sync_to_async(_record)(attempt, {m.node_id: found[m.name] for m in members}, network.signature)
    if texts := [*texts, *differ.differences(facts), *network.texts]:
        raise End(Reason.PREFLIGHT, "; ".join(texts))
    placed = [_with_way(member, network.ways.get(member.name)) for member in members]
    port = int(facts[members[0].name]["port"])
    return Passed(placed, port, disk.warnings(asked.recipe, asked.course, members, facts, network.shared))


@dataclass(frozen=True)
class _Network:
    """What lies between the nodes. `signature`: of their state, where every port was just found open. `shared`: whether
    they were seen to have one disk; None where nobody looked.
    """

    ways: Mapping[str, Way] = field(default_factory=dict)
    found: Mapping[str, Findings] = field(default_factory=dict)
    texts: Sequence[str] = ()
    signature: str = ""
    shared: bool | None = None


async def _answers(
    members: Sequence[Member], hosts: steps.Hosts, asked: Asked, token: str
) -> tuple[dict[str, Answer], dict[str, clock.Tick]]:
    """Ask every node for itself and for its time, all at once."""

    async def one(member: Member) -> tuple[Answer, clock.Tick]:
        host = hosts[member.rank]
        peers = [other.slot.address for other in members if other is not member]
        question = Question(asked.model, True, peers, steps.token_of(token, member))
        facts, tick = await asyncio.gather(ask(member, host, question), clock.look(host, 1))
        return facts, tick

    both = await asyncio.gather(*map(one, members))
    names = [member.name for member in members]
    facts = dict(zip(names, (answer for answer, _ in both), strict=True))
    return facts, dict(zip(names, (tick for _, tick in both), strict=True))


def _of_node(members: Sequence[Member], member: Member, facts: Answer, asked: Asked) -> Findings:
    """Say what one node's answer means for this run."""
    found = alone.findings(member, facts) | steps.model(asked.model, facts)
    if lacking := fits.problems(asked.recipe, members, member, facts):
        found["memory"] = bad(*lacking)
    if lacking := disk.problems(asked.recipe, asked.course, members, member, facts):
        found["disk"] = bad(*lacking)
    return found


async def _network(members: Sequence[Member], hosts: steps.Hosts, facts: Mapping[str, Answer], token: str) -> _Network:
    """Look between the nodes, where all of them have answered."""
    if not all("routes" in answer for answer in facts.values()):
        return _Network(found=steps.between(members, nothing("not all nodes have said what they have")))
    if len(members) < 2:
        await steps.forget(members, hosts, token)
        return _Network(found=steps.between(members, steps.ONE_NODE))
    seen = await steps.seen(members, hosts, token)
    forgetting = asyncio.create_task(steps.forget(members, hosts, token))
    try:
        found = await _between(members, hosts, facts, storage.findings(seen), token)
        return replace(found, shared=storage.shared(seen))
    finally:
        await forgetting


async def _between(
    members: Sequence[Member],
    hosts: steps.Hosts,
    facts: Mapping[str, Answer],
    stored: Mapping[str, Finding],
    token: str,
) -> _Network:
    ways, told = steps.ways(members, facts)
    found = {name: said | {"storage": stored[name], "allreduce": allreduce.LATER} for name, said in told.items()}
    if len(ways) < len(members):
        lost = [f"node {name}: {finding.sentence}" for name, said in told.items() for finding in _bad(said)]
        return _Network(found=found, texts=lost)
    state = signature.of(members, ways, facts)
    if proven := await sync_to_async(signature.proven_at)(state):
        believed = ok(f"open both ways at {proven:%Y-%m-%d %H:%M} UTC, and nothing has changed since")
        return _Network(ways, _joined(found, {name: {"ports": believed} for name in ways}))
    opened = ports.findings(await ports.look(members, hosts, ways, facts, token))
    texts = list(dict.fromkeys(finding.sentence for finding in _bad(opened)))
    found = _joined(found, {name: {"ports": finding} for name, finding in opened.items()})
    return _Network(ways, found, texts, "" if texts else state)


def _bad(findings: Findings) -> list[Finding]:
    return [finding for finding in findings.values() if finding.state == State.PROBLEM]


def _joined(one: Mapping[str, Findings], other: Mapping[str, Findings]) -> dict[str, Findings]:
    return {name: findings | other[name] for name, findings in one.items()}


def _record(attempt: Attempt, found: Mapping[int, Findings], state: str) -> None:
    run = attempt.run
    cells.record(Preflight(cluster=run.cluster, attempt=attempt, asked_by="launch", signature=state), found)


def _with_way(member: Member, way: Way | None) -> Member:
    """Return the member with the interface by which its ranks shall meet the others."""
    if way is None or member.slot.interface:
        return member
    return replace(member, slot=replace(member.slot, interface=way.interface))
