"""PURE: what a sample says of one GPU besides its memory, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.spec import throttle

UNITS = (
    ("load", "{:.0%} busy"),
    ("temperature", "{:.0f} °C"),
    ("power", "{:.0f} W"),
    ("clock_sm", "{:.0f} MHz"),
)


def gpu_note(gpu: Mapping[str, Any]) -> str:
    """Return such as `97% busy, 61 °C, slowed by power cap`; "" where nothing is known. `gpu`: one of a SAMPLE."""
    known = [words.format(gpu[name]) for name, words in UNITS if isinstance(gpu.get(name), int | float)]
    slowed = throttle.words(gpu.get("throttle"))
    errors = gpu.get("ecc_uncorrected")
    return ", ".join(
        known
        + ([f"slowed by {' and '.join(slowed)}"] if slowed else [])
        + ([f"{errors} uncorrected memory errors: have this card looked at"] if errors else [])
    )
