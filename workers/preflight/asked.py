"""What a node says of itself, asked of it by the preflight of the very code that would train there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from training.spec.lint import Problem
from training.spec.plan import training_argv
from webapp.fleet.models import Node
from webapp.fleet.ssh import Host

from .. import group
from ..group import Answer, Member

UNMADE = Problem("python", "it has no interpreter yet", "Have one made on the node's page, or name one.")
NO_PYTHON = "Give the absolute path of a Python 3.11 or newer on that node."
SECONDS = 90.0


@dataclass(frozen=True)
class Question:
    """`model`: a folder on the nodes, or a hub's name; `peers`: the others' addresses; `token`: left for them to see.

    `network`: ask for a free port and the ways to the peers.
    """

    model: str = ""
    network: bool = False
    peers: Sequence[str] = ()
    token: str = ""

    def words(self, member: Member) -> list[str]:
        words = ["--scratch", member.slot.scratch]
        if self.model.startswith("/"):
            words += ["--model", self.model]
        if self.network:
            words += ["--address", member.slot.address, *(w for peer in self.peers for w in ("--peer", peer))]
        return words + (["--token", self.token] if self.token else [])


ALONE = Question()


async def ask(member: Member, host: Host, question: Question = ALONE) -> Answer:
    """Return what `preflight` says; a node without Python says it through `problems`."""
    if not member.slot.python:
        return {"problems": [vars(UNMADE)]}
    argv = training_argv(member.slot, member.release, "preflight", *question.words(member))
    result = await host.run(argv, seconds=SECONDS)
    if result.code == 0:
        return group.answer(member, result.out)
    reason = (result.err or result.out).strip()[-500:] or f"it ended with status {result.code}"
    return {"problems": [{"field": "python", "reason": f"{member.slot.python}: {reason}", "fix": NO_PYTHON}]}


def problems(member: Member, facts: Mapping[str, Any]) -> list[Problem]:
    """Return what keeps the node from training."""
    found = [Problem(str(p["field"]), str(p["reason"]), str(p["fix"])) for p in facts.get("problems", [])]
    gpus = len(facts.get("gpus") or [])
    if "gpus" in facts and member.slot.accelerator and gpus < member.slot.processes:
        reason = f"{gpus} GPUs were found and {member.slot.processes} are asked for"
        found.append(Problem("processes", reason, "Lower the number, or say that the node has no GPUs."))
    return found


def keep(member: Member, asked_at: datetime, facts: Answer, found: Sequence[Problem]) -> None:
    """Write down what a check said; facts of before stay where there are none now.

    A slow answer says nothing of a node that is reached otherwise by now, or has another interpreter, and nothing where
    one that was asked later has come.
    """
    way, slot = member.endpoint, member.slot
    changes: dict[str, Any] = {"checked_at": asked_at, "problem": "\n".join(str(p) for p in found)}
    if "versions" in facts:
        changes["facts"] = facts
    same = Node.objects.filter(pk=member.node_id, address=way.address, port=way.port, user=way.user)
    same = same.filter(host_key=way.host_key, python=slot.python, scratch=slot.scratch)
    same.exclude(checked_at__gt=asked_at).update(**changes)
