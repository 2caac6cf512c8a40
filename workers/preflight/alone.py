"""PURE: what one node's answer means, check by check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training.spec.lint import Problem
from webapp.show import size

from ..group import Member
from .asked import problems
from .finding import Finding, Findings, bad, nothing, ok, warning

# By which check a problem's field is shown; what isn't here is shown as the interpreter's.
CHECK_OF = {
    "versions": "versions",
    "cuda": "versions",
    "gpus": "gpus",
    "processes": "gpus",
    "scratch": "scratch",
    "disk_free": "disk",
    "internal_address": "interface",
}
SHOWN = ("torch", "transformers", "accelerate", "trl", "flash_attn", "bitsandbytes")
IN_USE = 0.05  # of a GPU's memory: less is what a driver, a desktop or a monitor takes
UNASKED = nothing("the node has not said what it has")


def findings(member: Member, facts: Mapping[str, Any]) -> Findings:
    """Return a finding for each check that one node's answer decides."""
    said = _said(member, facts) if "versions" in facts else dict.fromkeys(ONE_NODE, UNASKED)
    by_check: dict[str, list[Problem]] = {}
    for problem in problems(member, facts):
        by_check.setdefault(CHECK_OF.get(problem.field, "python"), []).append(problem)
    return said | {check: bad(*found) for check, found in by_check.items()}


def _said(member: Member, facts: Mapping[str, Any]) -> Findings:
    return {
        "python": ok(f"{facts['python']}, {facts['executable']}"),
        "versions": ok(_versions(member, facts)),
        "gpus": _gpus(member, facts),
        "idle": idle(_seen(member, facts)),
        "driver": _driver(facts),
        "links": _links(facts),
        "memory": ok(f"{size(facts['ram_available'])} of {size(facts['ram_total'])} free"),
        "disk": ok(f"{size(facts['disk_free'])} of {size(facts['disk_total'])} free"),
        "scratch": ok(f"{member.slot.scratch} can be written"),
    }


ONE_NODE = ("python", "versions", "gpus", "idle", "driver", "links", "memory", "disk", "scratch")


def _versions(member: Member, facts: Mapping[str, Any]) -> str:
    known = facts["versions"]
    words = [f"{name} {known[name]}" for name in SHOWN if known.get(name)]
    words += [f"{name.upper()} {facts[name]}" for name in ("cuda", "nccl") if facts.get(name)]
    return ", ".join([*words, f"our code {member.release[:8]}"])


def _gpus(member: Member, facts: Mapping[str, Any]) -> Finding:
    names = [gpu["name"] for gpu in facts["gpus"]]
    if not names:
        return nothing("the node has none: it trains on its processors")
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return ok(kinds if member.slot.accelerator else f"{kinds}; set to train without")


def _seen(member: Member, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out the GPUs that the launch does not see: another run may train there."""
    mine = member.slot.gpus
    if not mine:
        return facts
    held = [process for process in facts.get("gpu_processes") or [] if process["gpu"] in mine]
    return {"gpus": [gpu for gpu in facts["gpus"] if gpu["index"] in mine], "gpu_processes": held}


def idle(facts: Mapping[str, Any]) -> Finding:
    """Say who holds the GPUs' memory. A small part is shown, a large one refused: training would run out of it."""
    if not facts["gpus"]:
        return nothing("there are no GPUs")
    holders = [_holder(process) for process in facts.get("gpu_processes") or []]
    busy = [gpu for gpu in facts["gpus"] if gpu["memory_used"] > IN_USE * gpu["memory_total"]]
    if busy:
        used = ", ".join(f"{size(gpu['memory_used'])} of GPU {gpu['index']}" for gpu in busy)
        who = "; ".join(holders) or "no process that can be seen from here"
        return bad(Problem("gpus", f"{used} in use by {who}", "End it on the node, or wait until it is over."))
    if holders:
        return warning("; ".join(holders), "Nothing to do where it stays as small.", "gpus")
    return ok("nobody holds them")


def _holder(process: Mapping[str, Any]) -> str:
    memory = size(process["memory"]) if process.get("memory") is not None else "some memory"
    who = " ".join(filter(None, (process.get("user"), process.get("command")))) or "unknown here"
    return f"GPU {process['gpu']}: process {process['pid']} ({who}) has {memory}"


def _driver(facts: Mapping[str, Any]) -> Finding:
    drivers = sorted({str(gpu["driver"]) for gpu in facts["gpus"]})
    if not drivers:
        return nothing("there are no GPUs")
    fabric = facts.get("fabric")
    if fabric not in (None, "active"):
        why = f"the node has NVSwitch, and its service nvidia-fabricmanager is {fabric}"
        return bad(Problem("gpus", why, "Start it: systemctl start nvidia-fabricmanager; see its log if it won't."))
    return ok(", ".join(drivers) + ("; nvidia-fabricmanager is active" if fabric else "; no NVSwitch"))


def _links(facts: Mapping[str, Any]) -> Finding:
    nvlink, fabrics = facts.get("nvlink") or {}, facts.get("fabrics") or {}
    words = [f"{len(names)} x {_fabric(driver)}" for driver, names in fabrics.items()]
    if nvlink.get("active"):
        words.insert(0, f"NVLink: {nvlink['active']} links")
    if nvlink.get("inactive"):
        text = ", ".join([*words, f"{nvlink['inactive']} NVLinks inactive"])
        return warning(text, "See `nvidia-smi nvlink --status` and the kernel's log on the node.", "gpus")
    return ok(", ".join(words)) if words else nothing("neither NVLink nor EFA nor InfiniBand was found")


def _fabric(driver: str) -> str:
    return "EFA" if driver == "efa" else f"RDMA device ({driver})"


def without(reason: str, checks: Sequence[str] = ONE_NODE) -> Findings:
    """Return the findings of a node that could not be asked."""
    return dict.fromkeys(checks, nothing(reason))
