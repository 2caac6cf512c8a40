"""A run that is running on two nodes, the watch on it with a clock that the test turns, and who is told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.webapp.conftest import page, quiet
from tests.webapp.rows import START, Feed, World, make_world
from webapp.notices.models import Notice
from workers.notices import watching

from .receiver import Receiver, serving

__all__ = ["page", "quiet"]  # fixtures


@pytest.fixture
def world(db: None, tmp_path: Any) -> World:
    return make_world(tmp_path)


@dataclass
class Watched:
    """A run under watch. `now` begins at the real time, in which rows come in; nodes' lines count from START."""

    feed: Feed
    now: datetime = field(default_factory=timezone.now)

    def look(self, seconds: float = 15.0) -> list[str]:
        """Let time pass, look, and return what is open: `kind key`."""
        self.now += timedelta(seconds=seconds)
        watching.sweep(self.now)
        watching.watch_runs(self.now)
        return [f"{notice.kind} {notice.key}" for notice in Notice.objects.open().order_by("kind", "key")]

    def samples(self, count: int = 15, *, free: float = 500e9, rank: int = 0, **gpu: Any) -> None:
        """Write samples of a node, one a second, with one GPU where anything is said of it."""
        gpus = [{"index": 0, "used": 1, "total": 2, **gpu}] if gpu else []
        data = {"ram_used": 1.0, "disk_free": free, "disk_total": 1000e9, "gpus": gpus}
        self.feed.write(f"node@{rank}", *[("sample", None, data)] * count)

    def steady(self, count: int = 40, after: int = 0) -> int:
        """Write losses that only vary a little; return the last step."""
        self.feed.metrics(*(2.0 + 0.1 * math.sin(i) for i in range(count)), after=after)
        return after + count


@pytest.fixture
def watched(world: World) -> Watched:
    found = Watched(world.running("watched"))
    found.feed.started(1000)
    return found


def moment(seconds: float) -> datetime:
    """Return when a node wrote its line with this number."""
    return datetime.fromtimestamp(START + seconds, UTC)


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE = True
    found = Receiver()
    with serving(found):
        yield found
