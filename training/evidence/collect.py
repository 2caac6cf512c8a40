"""What goes with an end so that a person can judge it without the node: lines, stacks, the kernel's words."""

from __future__ import annotations

from typing import Any

from ..spec.folder import JobFolder
from . import hang, log
from .kernel import Kernel
from .scene import Seen


def collect(folder: JobFolder, seen: Seen, words: Kernel, raw: str, text: str) -> dict[str, Any]:
    """Return {log: [lines], stacks: {rank: text}, kernel: {readable, lines}, oom_kills, stopped: {rank: pid},
    hanging: [{rank, since, waits, sentence}]}: what there is of it.
    """
    found: dict[str, Any] = {
        "log": log.telling(raw, text.rpartition("; then: ")[2]),
        "stacks": hang.stacks(folder),
        "stopped": {str(rank): pid for rank, pid in seen.stopped.items()},
        "hanging": [
            {"rank": one.rank, "since": one.since, "waits": one.waits, "sentence": one.sentence}
            for one in seen.hanging
        ],
    }  # fmt: skip
    if seen.since:
        found["kernel"] = {"readable": words.readable, "lines": [*words.lines, *words.other_oom]}
        found["oom_kills"] = seen.oom_kills
    return {name: value for name, value in found.items() if value not in ([], {})}
