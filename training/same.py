"""Whether all nodes mean the same run.

By hand each node is started by itself, with a recipe, an attempt and a checkpoint of its own finding. Ranks that
differ there would train at two rates, wait for each other, or save what never counts as one checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from .ranks import Ranks
from .spec.folder import attempt_name
from .spec.job import TrainJob
from .spec.lint import Problem, Refused

ABSENT = "nothing"
SHOWN = 60  # characters of a value
PLACES = ("model.name", "data.train", "data.test")  # where a node has them; their content is compared elsewhere
ROWS, MODEL = "data", "model"
FIXES = {
    "attempt": "Give every node the same --attempt.",
    "resume_from": "Give every node the same --resume STEP, and bring the checkpoint to each.",
    "fresh": "Give every node the same --fresh.",
    "nodes": "Give every node the same --nodes.",
    "test": "Give every node the rows to evaluate on, or none.",
    "code": "Put the same version of the training code on every node.",
    MODEL: "Copy the first node's folder of the base model to every node.",
    ROWS: "Give every node the same rows, tokenizer, code and libraries.",
}
RECIPE = "Give every node the same recipe."


def meant(job: TrainJob) -> dict[str, str]:
    """Return what has to be the same on every node, in words, by field; paths count by what they say of the run."""
    fields = dict(_fields(job.recipe.model_dump(mode="json")))
    for name in PLACES:
        fields.pop(name, None)
    return fields | {
        "attempt": attempt_name(PurePosixPath(job.checkpoints)),
        "resume_from": "/".join(PurePosixPath(job.resume_from).parts[-3:]) or ABSENT,  # attempt, checkpoints, step
        "fresh": ", ".join(sorted(job.fresh)) or ABSENT,
        "nodes": str(job.nodes),
        "test": "rows" if job.test else ABSENT,
        "code": code(),
    }


def _fields(section: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in section.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{above}{name}.")
        else:
            yield above + name, repr(value)


def code() -> str:
    """Return the hash of this package's code."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def check_same(values: Mapping[str, str], ranks: Ranks) -> None:
    """Raise Refused, on all ranks alike, where `values` are not the first rank's everywhere. All ranks must call."""
    if found := differing(ranks.gather(dict(values)), ranks.node_ranks):
        raise Refused(found)


def differing(seen: Sequence[Mapping[str, str]], nodes: Sequence[int]) -> list[Problem]:
    """Return a problem for each field in which some rank differs from the first, naming the first node that does.

    `seen`: by rank, the value of each field; `nodes`: by rank, its node.
    """
    head, found = seen[0], []
    for field in sorted({name for values in seen for name in values}):
        own = head.get(field, ABSENT)
        odd = next((n for n, values in enumerate(seen) if values.get(field, ABSENT) != own), None)
        if odd is not None:
            theirs = seen[odd].get(field, ABSENT)
            reason = f"node {nodes[odd]} has {_shown(theirs, own)} and node {nodes[0]} has {_shown(own, theirs)}"
            found.append(Problem(field, reason, FIXES.get(field, RECIPE)))
    return found


def _shown(value: str, other: str) -> str:
    """Return `value`, of a long one the part from where it differs from `other`."""
    if len(value) <= SHOWN:
        return value
    same = next((n for n, (one, two) in enumerate(zip(value, other, strict=False)) if one != two), len(other))
    start = max(0, min(same - 10, len(value) - SHOWN))
    return f"{'...' if start else ''}{value[start : start + SHOWN]}{'...' if start + SHOWN < len(value) else ''}"
