"""How a step says that its run, or job of one node, can't go on."""

from __future__ import annotations

from training.spec.faults import Reason


class End(RuntimeError):
    """The job ends with this reason; `text` is what a person reads."""

    def __init__(self, reason: Reason, text: str):
        self.reason, self.text = reason, text
        super().__init__(f"{reason}: {text}")
