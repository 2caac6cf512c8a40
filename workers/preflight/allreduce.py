"""All nodes add up one tensor, with torch itself; where that fails, every two of them do: the bad pair gets a name.

Real, and slow for it: every process imports torch first. So it is made on demand alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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


async def look(nodes: Nodes, until: float) -> dict[str, Finding]:
    """Return a finding for each node. `until`: when the trials of pairs end, in seconds of the event loop's clock."""
    names = list(nodes.members)
    answers = await _together(nodes, names)
    if not any(map(_why, answers.values())):
        return {name: ok(_sum(answers[name], len(names))) for name in names}
    if len(names) == 2:
        return findings(names, {(names[0], names[1]): _reason(answers)}, "")
    said = await _in_pairs(nodes, names, until)
    untried = [pair for pairs in rounds(names) for pair in pairs if pair not in said]
    return findings(names, {pair: why for pair, why in said.items() if why}, _reason(answers), untried)


async def _in_pairs(nodes: Nodes, names: Sequence[str], until: float) -> dict[Pair, str]:
    """Return why by pair where two of them fail, "" where they don't; of the pairs that were tried in time."""
    said: dict[Pair, str] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            for pairs in rounds(names):
                told = await asyncio.gather(*(_together(nodes, pair) for pair in pairs))
                said |= dict(zip(pairs, map(_reason, told), strict=True))
    return said


def rounds(names: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield rounds of pairs, every pair once in all of them, no name twice in one: as a tournament is played."""
    ring = [*names, ""] if len(names) % 2 else [*names]
    for _ in range(len(ring) - 1):
        halves = zip(ring[: len(ring) // 2], reversed(ring[len(ring) // 2 :]), strict=True)
        yield [(one, other) for one, other in halves if one and other]
        ring = [ring[0], ring[-1], *ring[1:-1]]


def findings(
    names: Sequence[str], broken: Mapping[Pair, str], whole: str, untried: Sequence[Pair] = ()
) -> dict[str, Finding]:
    """Return what is to be said of each node. `broken`: why by pair; `whole`: why it failed with all."""
    if not broken:
        every = len(names) * (len(names) - 1) // 2
        why = f"it fails with all nodes together ({whole}); {_of_pairs(every, len(untried), 'every two of them')}"
        return dict.fromkeys(names, bad(Problem("interface", why, FIX)))
    found: dict[str, list[Problem]] = {name: [] for name in names}
    for pair, why in broken.items():
        for name in pair:
            found[name].append(Problem("interface", f"none between {pair[0]} and {pair[1]} ({why})", FIX))
    left = {name: sum(name in pair for pair in untried) for name in names}
    return {name: bad(*said) if said else _other(len(names) - 1, left[name]) for name, said in found.items()}


def _other(pairs: int, untried: int) -> Finding:
    """Return what is said of a node that is in no broken pair. `pairs`: those it is in."""
    why = f"it fails with all nodes together; {_of_pairs(pairs, untried, 'every other node')}"
    return warning(why, "Mend the pair that is red first.")


def _of_pairs(pairs: int, untried: int, all_of_them: str) -> str:
    if not untried:
        return f"it works with {all_of_them}"
    works = "it works with those that were tried; " if untried < pairs else ""
    return f"{works}time was up before {untried} of {pairs} pairs could be tried"


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
