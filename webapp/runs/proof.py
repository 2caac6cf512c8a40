"""PURE: the proof that nothing of an attempt is left on a node, as its placement keeps it and as a person reads it.

A proof is {"at": seconds since the epoch, "processes": [pids], "gpus": [{index, before, now (bytes), others}] or null,
"gpu_problem": text, "seconds": from the request to stop on, or null}. `gpus` is null where the node's code is older
than the question. `others`: processes of somebody else that compute on that GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webapp.show import duration, size

Proof = Mapping[str, Any]
CLOSE = 100 << 20  # bytes of a GPU's memory that its driver may keep for itself, more or less
KIND = "proof"  # in the journal: node, rank, proven


def made(status: Mapping[str, Any], at: float, asked: float | None) -> dict[str, Any]:
    """Return the proof that a node's status gives. `asked`: when a stop was asked for, if it was; both by our clock."""
    return {
        "at": at,
        "processes": list(status.get("processes") or []),
        "gpus": status.get("gpus"),
        "gpu_problem": str(status.get("gpu_problem") or ""),
        "seconds": None if asked is None else round(max(0.0, at - asked), 1),
    }


def held(gpus: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the GPUs whose memory is not back where it was, and on which nobody else computes who may have it."""
    return [gpu for gpu in gpus or [] if not _is_back(gpu) and not gpu["others"]]


def _is_back(gpu: Mapping[str, Any]) -> bool:
    before, now = gpu["before"], gpu["now"]
    return before is None or now is None or now <= before + CLOSE


def sentence(proof: Proof) -> str:
    """Return the proof in words: `no process left, GPU memory 3 MB as before, 1.2 s after the request`."""
    count = len(proof["processes"])
    if count:
        return f"{count} {'process is' if count == 1 else 'processes are'} left"
    seconds = proof.get("seconds")
    if seconds is None:
        return f"no process left, {_memory(proof)}"
    took = f"{seconds:g} s" if seconds < 120 else duration(seconds)
    return f"no process left, {_memory(proof)}, {took} after the request"


def _memory(proof: Proof) -> str:
    gpus = proof.get("gpus")
    if problem := proof.get("gpu_problem"):
        return f"GPU memory not known ({problem})"
    if gpus is None:
        return "GPU memory not asked for by this release"
    if not gpus:
        return "no GPU here"
    if stuck := held(gpus):
        return "; ".join(f"GPU {g['index']} holds {size(g['now'])}, before {size(g['before'])}" for g in stuck)
    return _back(gpus)


def _back(gpus: list[dict[str, Any]]) -> str:
    known = [gpu["now"] for gpu in gpus if gpu["now"] is not None]
    if not known:
        return "GPU memory not known to the driver"
    taken = [str(gpu["index"]) for gpu in gpus if not _is_back(gpu)]
    most = size(max(known))
    if any(gpu["before"] is None for gpu in gpus):
        return f"GPU memory {most}, before the attempt not noted, and no process of it there"
    told = f"GPU memory {most} as before" if len(gpus) == 1 else f"memory of {len(gpus)} GPUs as before, at most {most}"
    return f"no GPU memory of it, others use GPU {', '.join(taken)}" if taken else told
