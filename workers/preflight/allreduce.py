"""All nodes add up one tensor, with torch itself; where that fails, every two of them do: the bad pair gets a name.

Real, and slow for it: every process imports torch first. So it is made on demand alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.spec.lint import Problem
from training.spec.plan import training_argv
from webapp.fleet.ssh import Host, SshError

from .. import group
from ..group import Answer, Member
from .finding import Finding, bad, nothing, ok, warning
from .interface import Way

SECONDS = 90.0  # which the processes on the nodes give themselves
MORE_SECONDS = 30.0
FIX = "See what lies between the two: firewall, MTU, cable. NCCL_DEBUG=INFO among the settings of ranks tells more."
BLOCKED = nothing("not tried while connections are blocked: see the ports")
LATER = nothing("on demand alone: Check now on this page; the launch itself is one")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Nodes:
    """Those that take part, by name."""

    members: Mapping[str, Member]
    hosts: Mapping[int, Host]
    ways: Mapping[str, Way]
    facts: Mapping[str, Mapping[str, Any]]


async def look(nodes: Nodes) -> dict[str, Finding]:
    """Return a finding for each node."""
    names = list(nodes.members)
    answers = await _together(nodes, names)
    if not any(map(_why, answers.values())):
        return {name: ok(_sum(answers[name], len(names))) for name in names}
    if len(names) == 2:
        return findings(names, {(names[0], names[1]): _reason(answers)}, "")
    broken = await _in_pairs(nodes, names)
    return findings(names, broken, _reason(answers))


async def _in_pairs(nodes: Nodes, names: Sequence[str]) -> dict[Pair, str]:
    """Return why by pair where two of them fail."""
    broken: dict[Pair, str] = {}
    for pairs in rounds(names):
        told = await asyncio.gather(*(_together(nodes, pair) for pair in pairs))
        broken |= {pair: why for pair, answer in zip(pairs, told, strict=True) if (why := _reason(answer))}
    return broken


def rounds(names: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield rounds of pairs, every pair once in all of them, no name twice in one: as a tournament is played."""
    ring = [*names, ""] if len(names) % 2 else [*names]
    for _ in range(len(ring) - 1):
        halves = zip(ring[: len(ring) // 2], reversed(ring[len(ring) // 2 :]), strict=True)
        yield [(one, other) for one, other in halves if one and other]
        ring = [ring[0], ring[-1], *ring[1:-1]]


def findings(names: Sequence[str], broken: Mapping[Pair, str], whole: str) -> dict[str, Finding]:
    """Return what is to be said of each node. `broken`: why by pair; `whole`: why it failed with all."""
    if not broken:
        why = f"it fails with all nodes together ({whole}) and works with every two of them"
        return dict.fromkeys(names, bad(Problem("interface", why, FIX)))
    found: dict[str, list[Problem]] = {name: [] for name in names}
    for pair, why in broken.items():
        for name in pair:
            found[name].append(Problem("interface", f"none between {pair[0]} and {pair[1]} ({why})", FIX))
    others = warning("it works with every other node, but not with all together", "Mend the pair that is red first.")
    return {name: bad(*problems) if problems else others for name, problems in found.items()}


async def _together(nodes: Nodes, names: Sequence[str]) -> dict[str, Answer | SshError]:
    """Return what each says of one all-reduce."""
    first = nodes.members[names[0]]
    try:
        told = await group.training(first, nodes.hosts[first.rank], "free-port", first.slot.address)
    except SshError as error:
        return dict.fromkeys(names, error)
    common = ["--world", str(len(names)), "--address", nodes.ways[names[0]].address, "--port", str(told["port"])]

    async def one(rank: int, name: str) -> Answer | SshError:
        member = nodes.members[name]
        words = ["--rank", str(rank), *common, "--interface", nodes.ways[name].interface, "--seconds", str(SECONDS)]
        words += ["--cuda"] if member.slot.accelerator and nodes.facts[name].get("gpus") else []
        try:
            argv = training_argv(member.slot, member.release, "all-reduce", *words)
            out = await nodes.hosts[member.rank].check(argv, seconds=SECONDS + MORE_SECONDS)
            return group.answer(member, out)
        except SshError as error:
            return error

    answers = await asyncio.gather(*(one(rank, name) for rank, name in enumerate(names)))
    return dict(zip(names, answers, strict=True))


def _why(answer: Answer | SshError) -> str:
    return answer.why if isinstance(answer, SshError) else str(answer.get("error", ""))


def _reason(answers: Mapping[str, Answer | SshError]) -> str:
    """Return what the first of those that failed says; "" where none did."""
    return next((f"{name}: {why}" for name, answer in answers.items() if (why := _why(answer))), "")


def _sum(answer: Answer | SshError, world: int) -> str:
    told = answer if isinstance(answer, dict) else {}
    return f"{world} nodes over {told['backend']} in {told['seconds']} s"
