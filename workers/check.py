"""Is a node ready? Asked of it by the preflight of the very code that would train there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from django.utils import timezone

from training.spec.folder import JobFolder
from training.spec.lint import Problem
from training.spec.plan import training_argv
from webapp.fleet.models import Node
from webapp.fleet.ssh import Endpoint, Host, SshError

from . import group
from .group import Answer, Member
from .launch import release

SAME = ("torch", "transformers", "accelerate", "trl")  # a difference between nodes is refused
NO_PYTHON = "Give the absolute path of a Python 3.11 or newer on that node."


async def ask(member: Member, host: Host, model: str = "") -> Answer:
    """Return what `preflight` says, of a model's folder as well; a node without Python says it through `problems`."""
    about = ("--model", model) if model.startswith("/") else ()
    argv = training_argv(member.slot, member.release, "preflight", "--scratch", member.slot.scratch, *about)
    result = await host.run(argv)
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


def differences(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one sentence for each version that is not the same on all nodes."""
    answered = {name: _versions(answer) for name, answer in facts.items() if "versions" in answer}
    texts = []
    for what in ("python", *SAME, "cuda", "nccl"):
        values = {name: versions[what] for name, versions in answered.items()}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{name} has {value or 'none'}" for name, value in values.items())
            texts.append(f"versions: {what} differs ({listed}). Install the same on every node.")
    return texts


def _versions(answer: Mapping[str, Any]) -> dict[str, str | None]:
    python = ".".join(str(answer.get("python", "")).split(".")[:2])  # patch releases train alike
    known = answer["versions"]
    return {"python": python, "cuda": answer.get("cuda"), "nccl": answer.get("nccl")} | {n: known.get(n) for n in SAME}


def keep(node_id: int, facts: Answer, found: Sequence[Problem]) -> None:
    """Write down what a check said; facts of before stay where there are none now."""
    changes: dict[str, Any] = {"checked_at": timezone.now(), "problem": "\n".join(str(p) for p in found)}
    if "versions" in facts:
        changes["facts"] = facts
    Node.objects.filter(pk=node_id).update(**changes)


def check_node(node_id: int) -> None:
    """Check one node for the Nodes page."""
    node = Node.objects.select_related("identity").filter(pk=node_id).first()
    if node is None:
        return
    nowhere = JobFolder(PurePosixPath(node.scratch))
    member = Member(0, node.pk, node.slot(), Endpoint.of(node), nowhere, release.current().digest)
    facts = group.on_each([member], _put_and_ask)[0]
    if isinstance(facts, SshError):
        keep(node.pk, {}, [facts.problem])
    else:
        keep(node.pk, facts, problems(member, facts))


async def _put_and_ask(member: Member, host: Host) -> Answer:
    await host.put_tree(str(member.scratch.release(member.release)), release.current().files)
    return await ask(member, host)
