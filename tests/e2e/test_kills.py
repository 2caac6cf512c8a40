"""A browser that was away, and a Ctrl-C, in the middle of a run: no line is lost or doubled.

What else can be killed: tests/faults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from . import ledger
from .person import Person
from .relay import Relay
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


def finish(stack: Stack, run: int) -> dict[str, Any]:
    """Wait for the end and hold the books against each other."""
    told = stack.wait_for_state(run, "succeeded", limit=600)
    assert told["step"] == STEPS
    assert len(told["attempts"]) == 1, "training went on undisturbed"
    checked = ledger.check(stack, run, scratches(stack))
    assert checked > STEPS
    return told


def scratches(stack: Stack) -> list[Path]:
    return sorted(path.parent for path in stack.state.glob("nodes/*/**/runs") if path.is_dir())


def test_a_browser_that_was_offline_shows_what_a_fresh_page_shows(stack: Stack, run: int, browser: Browser) -> None:
    relay = Relay(stack.port)
    person = Person(browser.new_context().new_page(), relay.url)
    person.log_in()
    person.open_run(run)
    person.wait_drawn(4)
    relay.cut()
    person.at("stale").wait_for(state="visible")
    seen = person.drawn()
    until("ten more steps without the browser", lambda: stack.run(run)["step"] >= min(seen + 10, STEPS))
    relay.mend()
    person.wait_drawn(STEPS)
    finish(stack, run)
    person.see_state("succeeded")
    kept = person.page.evaluate("window.shardboard.points('loss')")
    person.open_run(run)
    person.wait_drawn(STEPS)
    assert kept == person.page.evaluate("window.shardboard.points('loss')")
    assert len(kept) == STEPS
    person.page.context.close()
    relay.cut()


def test_ctrl_c_saves_and_the_next_start_knows(stack: Stack, run: int) -> None:
    stack.stop()
    stack.start()
    told = stack.wait_for_state(run, "stopped")
    assert told["reason"] == "stopped"
    assert told["step"] in [checkpoint["step"] for checkpoint in told["checkpoints"] if checkpoint["usable"]]
    assert ledger.check(stack, run, scratches(stack)) > told["step"]
