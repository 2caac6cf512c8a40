"""PURE: what the watch looks for, what it is called, and what to do about it."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """A word each, as rows, the API and webhooks have it."""

    NON_FINITE = "non_finite"
    SPIKE = "spike"
    PROGRESS = "no_progress"
    IDLE = "gpu_idle"
    DISK = "disk"
    HEAT = "heat"


LABELS = {
    Kind.NON_FINITE: "not finite",
    Kind.SPIKE: "loss spike",
    Kind.PROGRESS: "no progress",
    Kind.IDLE: "GPU idle",
    Kind.DISK: "disk soon full",
    Kind.HEAT: "too hot",
}
ENDED, ENDED_LABEL = "ended", "run ended"  # no notice, but what people ask for most: a run succeeded, failed, stopped
GLYPHS = {
    Kind.NON_FINITE: "∞",
    Kind.SPIKE: "⌃",
    Kind.PROGRESS: "‖",
    Kind.IDLE: "○",
    Kind.DISK: "▣",
    Kind.HEAT: "♨",
}
ADVICE = {
    Kind.NON_FINITE: "Lower the learning rate, or resume from a checkpoint before it. Rows that are empty or very long"
    " are the next suspects. The run ends by itself after limits.non_finite_steps such steps in a row.",
    Kind.SPIKE: "One spike that comes back down is mostly a hard batch. If it stays up: stop, resume from a checkpoint"
    " before it, with a lower learning rate or a tighter clip of the gradient.",
    Kind.PROGRESS: "Look at the end of the log: a save or an evaluation may be under way. Ranks that hang write their"
    " stacks there, and the run ends by itself after limits.hang_end_seconds.",
    Kind.IDLE: "Look at what the log says last. If other GPUs are busy, a rank waits; if all are idle, the loader, a"
    " save or an evaluation is what they wait for.",
    Kind.DISK: "Delete checkpoints that nobody needs, or keep fewer; else the next save fails.",
    Kind.HEAT: "The card slows itself down. Look at the airflow and at what else runs on that host; a power limit"
    " (nvidia-smi -pl) costs less than throttling.",
}


def label(kind: str) -> str:
    return LABELS[Kind(kind)] if kind in list(Kind) else kind
