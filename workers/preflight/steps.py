"""The steps that both kinds of preflight take, with all nodes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from training.spec.lint import Problem
from webapp.fleet.ssh import Host, SshError

from ..group import Member
from . import differ, interface, storage
from .finding import Finding, Findings, bad, nothing, ok
from .interface import Way

Hosts = Mapping[int, Host]
ONE_NODE = nothing("there is only one node to look at")
COPY = "Copy the model to the same path on every node."
BETWEEN = ("storage", "interface", "ports", "allreduce")


def token_of(token: str, member: Member) -> str:
    """Return the name of the file by which the others see a node's disk."""
    return f"{token}-{member.rank}"


async def seen(members: Sequence[Member], hosts: Hosts, token: str) -> storage.Seen:
    """Return by name whose tokens each node sees. Raises SshError."""
    names = {token_of(token, member): member.name for member in members}

    async def one(member: Member) -> frozenset[str]:
        there = await hosts[member.rank].names(str(member.scratch.sightings))
        return frozenset(names[name] for name in there if name in names)

    found = await asyncio.gather(*map(one, members))
    return dict(zip((m.name for m in members), found, strict=True))


async def forget(members: Sequence[Member], hosts: Hosts, token: str) -> None:
    """Take the tokens away. One that stays goes with a later preflight."""

    async def one(member: Member) -> None:
        with suppress(SshError):
            await hosts[member.rank].remove(str(member.scratch.sightings / token_of(token, member)))

    await asyncio.gather(*map(one, members))


def ways(
    members: Sequence[Member], facts: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Way], dict[str, Findings]]:
    """Return the way of each node to the others, where there is one, and what is to be said of it."""
    found: dict[str, Way] = {}
    told: dict[str, Findings] = {}
    for member in members:
        way, finding = interface.chosen(member, facts[member.name])
        told[member.name] = {"interface": finding}
        if way:
            found[member.name] = way
    return found, told


def compared(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Findings]:
    """Return by name what differs between nodes."""
    found: dict[str, Findings] = {name: {} for name in facts}
    for check, differing in (("versions", differ.of_nodes(facts)), ("driver", differ.of_drivers(facts))):
        for name, finding in differing.items():
            found[name][check] = finding
    return found


def between(members: Sequence[Member], finding: Finding) -> dict[str, Findings]:
    """Return by name the same word on everything that is between nodes."""
    return {member.name: dict.fromkeys(BETWEEN, finding) for member in members}


def model(name: str, facts: Mapping[str, Any]) -> Findings:
    """Say whether the model of a run is there; the launch refuses one that is not."""
    if not name.startswith("/"):
        return {"model": nothing(f"{name} comes from a hub")}
    if "model_there" not in facts:
        return {"model": nothing("the node has not said what it has")}
    if not facts["model_there"]:
        return {"model": bad(Problem("model", f"{name} is not there", COPY))}
    return {"model": ok(f"{name} is there")}
