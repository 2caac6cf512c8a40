"""Where the time goes: what can be seen of a line between node and chart without changing the service.

written (the line's own `at`) -> stored (its row's `received_at`, made in the transaction) -> nudged (the channel
layer's message, sent after the commit) -> sent (the frame in the browser) -> drawn.
"""

from __future__ import annotations

import itertools
import json
import statistics
import threading
import time
from bisect import bisect_left
from contextlib import suppress
from typing import Any

import redis
from playwright.sync_api import BrowserContext, Page

from tests.e2e.stack import Stack
from webapp.runs.nudge import GROUP

from .figures import percentile

Times = dict[int, float]  # step -> ms since the epoch
STORED = """
import json
from webapp.runs.models import Event
rows = Event.objects.filter(run={run}, kind="metrics")
print(json.dumps([[e.step, e.received_at.timestamp() * 1000] for e in rows]))
"""
# Notes when each batch with losses arrived: [steps, ms].
FRAMES = """
window.frames_seen = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => {
      const at = performance.timeOrigin + performance.now();
      for (const [x] of JSON.parse(data).points?.loss ?? []) window.frames_seen.push([x, at]);
    });
  }
};
"""


class Nudges:
    """When pages were nudged, in ms since the epoch, heard on the service's own Redis."""

    def __init__(self, url: str):
        self._heard = redis.Redis.from_url(url).pubsub(ignore_subscribe_messages=True)
        self._heard.psubscribe(f"*__{GROUP}")
        self.times: list[float] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(redis.ConnectionError, ValueError):  # closed, by us or with the service
            for _ in self._heard.listen():
                self.times.append(time.time() * 1000)

    def after(self, moments: Times) -> Times:
        """Return for each moment the first nudge not before it."""
        found = {step: bisect_left(self.times, at) for step, at in moments.items()}
        return {step: self.times[i] for step, i in found.items() if i < len(self.times)}


def watch_frames(context: BrowserContext) -> None:
    context.add_init_script(FRAMES)


def stored(stack: Stack, run: int) -> Times:
    return dict(json.loads(stack.manage("shell", "--no-imports", "-c", STORED.format(run=run)).splitlines()[-1]))


def sent(page: Page) -> Times:
    found: list[list[Any]] = page.evaluate("window.frames_seen")
    return {int(x): at for x, at in found}


def table(stages: dict[str, Times]) -> str:
    """Return one line a stage: how long the lines took to it from the stage before, in ms."""
    lines = []
    for before, name in itertools.pairwise(stages):
        took = [stages[name][step] - at for step, at in stages[before].items() if step in stages[name]]
        middle, high = statistics.median(took), percentile(took, 0.99)
        lines.append(
            f"  {before:>8} to {name:<8} median {middle:5.1f}, 99th percentile {high:5.1f}, most {max(took):5.1f}"
        )
    return "\n".join(lines)
