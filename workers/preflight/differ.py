"""PURE: what must be the same on all nodes, and is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from training.spec.lint import Problem

from .finding import Finding, bad, warning

SAME = ("torch", "transformers", "accelerate", "trl", "peft", "flash_attn", "bitsandbytes")
FIX = "Install the same on every node."
Facts = Mapping[str, Mapping[str, Any]]  # by a node's name


def differences(facts: Facts) -> list[str]:
    """Return one sentence for each version that is not the same on all nodes."""
    return [f"versions: {_sentence(what, values)}. {FIX}" for what, values in _differing(facts)]


def of_nodes(facts: Facts) -> dict[str, Finding]:
    """Return a finding for each node whose versions are not those of most; where no version has most, for all."""
    found: dict[str, list[Problem]] = {}
    for what, values in _differing(facts):
        for name in _odd(values):
            found.setdefault(name, []).append(Problem("versions", _sentence(what, values), FIX))
    return {name: bad(*problems) for name, problems in found.items()}


def of_drivers(facts: Facts) -> dict[str, Finding]:
    """Return a warning for each node where drivers differ: NCCL mostly bears it."""
    values = {name: _drivers(answer) for name, answer in facts.items()}
    if len(set(values.values())) < 2:
        return {}
    told = warning(_sentence("the driver", values), "Bring the nodes to one driver when you next can.", "gpus")
    return dict.fromkeys(values, told)


def _drivers(answer: Mapping[str, Any]) -> str | None:
    return ", ".join(sorted({str(gpu["driver"]) for gpu in answer.get("gpus") or []})) or None


def _differing(facts: Facts) -> Iterator[tuple[str, dict[str, str | None]]]:
    answered = {name: _versions(answer) for name, answer in facts.items() if "versions" in answer}
    for what in ("python", *SAME, "cuda", "nccl"):
        values = {name: versions[what] for name, versions in answered.items()}
        if len(set(values.values())) > 1:
            yield what, values


def _versions(answer: Mapping[str, Any]) -> dict[str, str | None]:
    python = ".".join(str(answer.get("python", "")).split(".")[:2])  # patch releases train alike
    known = answer["versions"]
    named = {name: known.get(name) for name in SAME}
    return {"python": python, "cuda": answer.get("cuda"), "nccl": answer.get("nccl")} | named


def _sentence(what: str, values: Mapping[str, str | None]) -> str:
    listed = ", ".join(f"{name} has {value or 'none'}" for name, value in values.items())
    return f"{what} differs ({listed})"


def _odd(values: Mapping[str, str | None]) -> list[str]:
    (most, count), *others = Counter(values.values()).most_common()
    if any(other == count for _, other in others):
        return list(values)
    return [name for name, value in values.items() if value != most]
