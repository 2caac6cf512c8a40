"""Every node opens a connection to every other one, at the same time and both ways, over the chosen interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from training.spec.lint import Problem
from training.spec.plan import training_argv
from webapp.fleet.ssh import Host, SshError

from .. import group
from ..group import Answer, Member
from .finding import Finding, bad, ok
from .interface import Way

SECONDS = 6.0
FIX = "Let the nodes open TCP connections to each other, on all ports above 1023: those of a job are chosen anew."
Answers = Mapping[str, Answer | SshError]  # by a node's name


async def look(
    members: Sequence[Member], hosts: Mapping[int, Host], ways: Mapping[str, Way], facts: Mapping[str, Any], token: str
) -> dict[str, Answer | SshError]:
    """Return what each node says, or the error that it gave."""
    where = {m.name: f"{m.name}={ways[m.name].address}:{facts[m.name]['port']}" for m in members}

    async def one(member: Member) -> Answer | SshError:
        words = ["--name", member.name, "--token", token, "--source", ways[member.name].address]
        words += ["--port", str(facts[member.name]["port"]), "--seconds", str(SECONDS)]
        words += [w for name, peer in where.items() if name != member.name for w in ("--peer", peer)]
        try:
            argv = training_argv(member.slot, member.release, "reach", *words)
            return group.answer(member, await hosts[member.rank].check(argv, seconds=SECONDS * 5))
        except SshError as error:
            return error

    return dict(zip((m.name for m in members), await asyncio.gather(*map(one, members)), strict=True))


def findings(answers: Answers) -> dict[str, Finding]:
    """Return a finding for each node: a connection that failed is told at both its ends."""
    found: dict[str, list[Problem]] = {name: [] for name in answers}
    for name, answer in answers.items():
        if isinstance(answer, SshError):
            found[name].append(answer.problem)
            continue
        for peer, why in _blocked(answer):
            problem = Problem("interface", f"no connection from {name} to {peer} ({why})", FIX)
            found[name].append(problem)
            found[peer].append(problem)
    return {name: bad(*problems) if problems else _open(answers[name]) for name, problems in found.items()}


def _blocked(answer: Answer) -> list[tuple[str, str]]:
    errors = answer["errors"]
    return [(peer, errors.get(peer, "no answer")) for peer, ms in answer["reached"].items() if ms is None]


def _open(answer: Answer | SshError) -> Finding:
    reached = answer["reached"] if isinstance(answer, dict) else {}
    return ok("both ways: " + ", ".join(f"{peer} {ms} ms" for peer, ms in reached.items()))
