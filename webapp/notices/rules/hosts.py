"""Of samples: GPUs that have nothing to do or are too hot, disks that are nearly full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from training.spec import throttle

from ..kinds import Kind
from .verdict import Level, Verdict

IDLE, BUSY = 0.05, 0.10  # of a GPU's time: under the one it is idle, over the other it is at work
HOT, COOL = 90.0, 85.0  # degrees C
HEAT_BITS = 0x20 | 0x40  # spec.throttle: heat, by the driver and by the hardware
FEW_BYTES, ENOUGH_BYTES = 20e9, 25e9
FEW, ENOUGH = 0.05, 0.07  # of the disk


class Sample(NamedTuple):
    """`at`: seconds since the epoch, by the node's clock. `data`: as SAMPLE of training.spec.events has it."""

    at: float
    data: dict[str, Any]


class NodeSamples(NamedTuple):
    """A node's samples since the last look, oldest first. `gpus`: the run's; empty: all."""

    name: str
    samples: Sequence[Sample]
    gpus: frozenset[int] = frozenset()


def of_node(node: NodeSamples) -> list[Verdict]:
    """Return what there is to say of a node; nothing of what it does not know."""
    found: list[Verdict | None] = [disk(node)] if node.samples else []
    for index, seen in sorted(_gpus(node).items()):
        found += [idle(node.name, index, seen), heat(node.name, index, seen)]
    return [verdict for verdict in found if verdict]


def _gpus(node: NodeSamples) -> dict[int, list[Sample]]:
    found: dict[int, list[Sample]] = {}
    for sample in node.samples:
        for gpu in sample.data.get("gpus") or ():
            if not node.gpus or gpu["index"] in node.gpus:
                found.setdefault(gpu["index"], []).append(Sample(sample.at, gpu))
    return found


def _numbers(seen: Sequence[Sample], name: str) -> list[float]:
    values = [sample.data.get(name) for sample in seen]
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def idle(node: str, index: int, seen: Sequence[Sample]) -> Verdict | None:
    """Return whether all of these loads are under IDLE; one over it begins the wait anew."""
    loads = _numbers(seen, "load")
    if not loads:
        return None
    most, mean = max(loads), sum(loads) / len(loads)
    level = Level.BAD if most < IDLE else Level.GOOD if mean >= BUSY else Level.UNSURE
    text = f"GPU {index} of {node} has been less than {IDLE:.0%} busy for five minutes."
    return Verdict(Kind.IDLE, f"{node} GPU {index}", level, seen[0].at, seen[-1].at, f"{most:.0%} busy", text)


def heat(node: str, index: int, seen: Sequence[Sample]) -> Verdict | None:
    """Return whether the GPU is at HOT or more, or says that heat slows it down."""
    degrees = _numbers(seen, "temperature")
    bits = [gpu for _, gpu in seen if isinstance(gpu.get("throttle"), int)]
    if not degrees and not bits:
        return None
    slowed = [gpu["throttle"] & HEAT_BITS for gpu in bits if gpu["throttle"] & HEAT_BITS]
    most = max(degrees, default=None)
    hot, cool = bool(slowed) or (most or 0) >= HOT, not slowed and (most or 0) < COOL
    level = Level.BAD if hot else Level.GOOD if cool else Level.UNSURE
    said = [f"{most:.0f} °C"] if most is not None else []
    said += [f"slowed by {' and '.join(throttle.words(max(slowed)))}"] if slowed else []
    figure = ", ".join(said)
    text = f"GPU {index} of {node} is too hot: {figure}."
    return Verdict(Kind.HEAT, f"{node} GPU {index}", level, seen[0].at, seen[-1].at, figure, text)


def disk(node: NodeSamples) -> Verdict | None:
    """Return whether the disk that the run writes to has less than FEW of it or FEW_BYTES left."""
    last = node.samples[-1]
    free, total = (_numbers([last], name) for name in ("disk_free", "disk_total"))
    if not free or not total or not total[0]:
        return None
    left, part = free[0], free[0] / total[0]
    bad, good = left < FEW_BYTES or part < FEW, left > ENOUGH_BYTES and part > ENOUGH
    level = Level.BAD if bad else Level.GOOD if good else Level.UNSURE
    figure = f"{left / 1e9:.3g} GB free"
    text = f"The disk of {node.name} that the run writes to has {left / 1e9:.3g} GB left of {total[0] / 1e9:.3g} GB."
    return Verdict(Kind.DISK, node.name, level, last.at, last.at, figure, text)


def forecast(now: float, fits: bool, text: str) -> Verdict:
    """Return a verdict on the checkpoints to come, out of what webapp.runs.shelf.room foretells."""
    level = Level.GOOD if fits else Level.BAD
    return Verdict(Kind.DISK, "checkpoints", level, now, now, "too little for what is to come", f"{text}.")
