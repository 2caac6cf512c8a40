"""A Ctrl-C in the middle of a run: no line is lost or doubled.

What else can be killed: tests/faults. A browser that was away: tests/browser.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import ledger
from .stack import Stack, until

pytestmark = pytest.mark.e2e
STEPS = 50


@pytest.fixture
def run(stack: Stack, request: pytest.FixtureRequest) -> int:
    """A run in the middle of its training."""
    made = stack.api("POST", "/runs", {
        "name": request.node.name, "preset": "tiny", "model": "tiny-llama-5M", "dataset": "code-chat",
        "cluster": "demo",
        "recipe": {"optimisation": {"max_steps": STEPS}, "checkpoints": {"every_steps": 20}}, "launch": True,
    })  # fmt: skip
    until("the first steps", lambda: stack.run(made["id"])["step"] >= 3)
    return int(made["id"])


def scratches(stack: Stack) -> list[Path]:
    return sorted(path.parent for path in stack.state.glob("nodes/*/**/runs") if path.is_dir())


def test_ctrl_c_saves_and_the_next_start_knows(stack: Stack, run: int) -> None:
    stack.stop()
    stack.start()
    told = stack.wait_for_state(run, "stopped")
    assert told["reason"] == "stopped"
    assert told["step"] in [checkpoint["step"] for checkpoint in told["checkpoints"] if checkpoint["usable"]]
    assert ledger.check(stack, run, scratches(stack)) > told["step"]
