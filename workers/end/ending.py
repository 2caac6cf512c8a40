"""How a step says that its run, or job of one node, can't go on."""

from __future__ import annotations

from training.spec.faults import Reason


class End(RuntimeError):
    """The job ends with this reason; `text` is what a person reads. `node`: name of the one to blame, where known."""

    def __init__(self, reason: Reason, text: str, node: str = ""):
        self.reason, self.text, self.node = reason, text, node
        super().__init__(f"{reason}: {text}")
