"""What a browser's test can do to the rows behind its pages. Arguments and answers are what JSON can carry."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.bench.store.folded import folded
from tests.webapp.rows import HOSTILE, START, Feed, make_world
from tests.webapp.trials import exported
from training.spec.faults import Reason
from webapp.notices import telling
from webapp.notices.models import Notice, Sending
from webapp.notices.subscribing import subscribe
from webapp.runs import actions, levels
from webapp.runs.each import insert_each
from webapp.runs.folding import BLOCK
from webapp.runs.models import Chunk, Placement, Run, Series
from webapp.runs.packing import Column
from webapp.runs.replay import replayed
from webapp.runs.states import RunState
from workers.notices import watching

GIB = 1 << 30
STACKS = "Thread 0x7f (most recent call first):\n  File a.py, line 3 in waits\n"
EVIDENCE = {"log": ["RuntimeError: CUDA out of memory"], "stacks": {"1": STACKS},
            "kernel": {"readable": True, "lines": ["NVRM: Xid 31"]}}  # fmt: skip


class Rows:
    """The rows of one site: two nodes, a model, a data set, and runs fed line by line."""

    def __init__(self, folder: Path):
        self.world = make_world(folder)
        self.feeds: dict[int, Feed] = {}

    def session(self) -> tuple[str, str]:
        """Return name and value of the cookie of somebody who is logged in."""
        client = Client()
        client.force_login(self.world.user)
        return settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value

    def running(self, name: str, total: int = 300, recipe: dict[str, Any] | None = None) -> int:
        feed = self.world.running(name, **recipe or {})
        feed.started(total)
        self.feeds[feed.run.pk] = feed
        return feed.run.pk

    def metrics(self, run: int, losses: list[float], after: int = 0) -> None:
        """Write a step's line for each loss, the first at step `after` + 1, in one batch."""
        same = {"grad_norm": 1.0, "learning_rate": 1e-4}
        figures = (same | {"loss": loss, "num_tokens": 512.0 * (after + i)} for i, loss in enumerate(losses, 1))
        self.feeds[run].write("train@0", *(("metrics", after + i, data) for i, data in enumerate(figures, 1)))

    def past(self, run: int, count: int, other: dict[int, float]) -> None:
        """Give the run's loss so many steps, as folding leaves them: 0.5 to 1.5, but where there is another value."""
        values = 1 + np.sin(np.arange(count)) / 2
        for step, value in other.items():
            values[int(step) - 1] = value
        row = Series.objects.create(attempt=self.feeds[run].run.attempt, name="loss", axis="step")
        chunks = folded(Column(np.arange(1.0, count + 1), values), BLOCK)
        rows = [levels.row(row.pk, part, level, loose=loose) for level, loose, part in chunks]
        insert_each(Chunk, levels.COLUMNS, rows)

    def samples(self, run: int, count: int) -> None:
        for rank in range(2):
            self.feeds[run].write(f"node@{rank}", *(("sample", None, sample(i)) for i in range(count)))

    def log(self, run: int, texts: list[str]) -> None:
        self.feeds[run].write("log@0", *(("log", None, {"text": text}) for text in texts))

    def checkpoint(self, run: int, step: int) -> int:
        return self.feeds[run].checkpoint(step).pk

    def state(self, run: int) -> str:
        return Run.objects.get(pk=run).state

    def end(self, run: int, state: str, reason: str = "", text: str = "") -> None:
        self.feeds[run].end(RunState(state), reason=Reason(reason), text=text)

    def fail(self, run: int) -> None:
        """Let the second node's rank 1 run out of memory, which drags the first along."""
        rows = Placement.objects.filter(attempt__run=run)
        first = {"reason": "out_of_gpu_memory", "text": "CUDA out of memory", "code": 1, "rank": 1}
        rows.filter(rank=1).update(exit=first | {"evidence": EVIDENCE})
        rows.filter(rank=0).update(exit={"reason": "peer_ended", "text": "Connection closed", "code": 1})
        failure = {"node": self.world.nodes[1].name, "node_rank": 1, "rank": 1, "at": START, "dragged": [0]}
        self.feeds[run].end(
            RunState.FAILED, reason=Reason.OUT_OF_GPU_MEMORY, text="beta: CUDA out of memory", failure=failure
        )

    def resume(self, run: int) -> None:
        """Go on from the newest checkpoint, as far as `running`; what is written from now on is the new attempt's."""
        row = Run.objects.get(pk=run)
        actions.resume(row, "ada")
        self.feeds[run] = self.world.started(row)

    def late(self, run: int, losses: list[float], after: int) -> None:
        """Write steps of the run's first attempt, whose lines come late."""
        old = Feed(self.feeds[run].run, self.world.nodes)
        old.streams = {s.source: s for s in old.run.attempts.get(number=1).streams.all()}
        old.metrics(*losses, after=after)

    def crowd(self, writers: int, points: int) -> list[tuple[int, int]]:
        """Let so many runs be written to at once while somebody reads on and on; return (run, lines stored) of each."""
        feeds = [self.world.running(f"of a crowd of {writers}") for _ in range(writers)]
        done = threading.Event()
        with ThreadPoolExecutor(writers + 1) as pool:
            reader = pool.submit(_read_until, done)
            try:
                list(pool.map(lambda feed: _write(feed, points), feeds))
            finally:
                done.set()
        reader.result()  # it did read all the time
        stored = {feed.run.pk: replayed(feed.run.pk, 0, writers * points) for feed in feeds}
        return [(run, sum(row.kind == "metrics" for row in rows)) for run, rows in stored.items()]

    def watch(self, run: int) -> None:
        """Let the watch look at all runs, and the person be told of this one by a webhook that is not there."""
        watching.sweep(timezone.now())
        watching.watch_runs()
        assert Notice.objects.open().filter(run=run).exists()
        said = {"way": "webhook", "url": "https://192.0.2.1/x", "scope": "run", "run": run, "kinds": ["spike", "ended"]}
        made, _ = subscribe(self.world.user, said, "http://127.0.0.1")
        Sending.objects.filter(pk=telling.test(made).pk).update(tries=1, problem="it answered 500")

    def many(self, count: int) -> None:
        """Make so many drafts more, all alike."""
        run = self.world.draft("one of many")
        fields = {f.attname: getattr(run, f.attname) for f in Run._meta.concrete_fields if f.name != "id"}
        Run.objects.bulk_create((Run(**fields) for _ in range(count - 1)), batch_size=500)

    def everything(self) -> dict[str, str]:
        """Make a bit of everything that pages can show; return {page: address}."""
        shown = self.running(HOSTILE)
        self.samples(shown, 30)
        self.log(shown, [f"{{'loss': {1 / i:.3f}}}" for i in range(1, 60)])
        self.metrics(shown, [3.0, float("nan"), *(2.5 - i / 100 for i in range(100))])
        self.watch(shown)
        done = self.running("done", total=5)
        self.metrics(done, [3.0, 2.5, 2.0, 1.5, 1.25])
        checkpoints = [self.checkpoint(done, step) for step in (2, 4, 5)]
        self.end(done, "succeeded", "completed")
        export = exported(self.feeds[done].run.attempt.checkpoints.get(pk=checkpoints[2]), self.world.nodes[0])
        failed = self.running("failed", recipe={"optimisation": {"per_device_batch": 4}})
        self.fail(failed)
        actions.launch(self.world.draft("waits"), "ada")
        return {
            "runs": "/runs/", "run": f"/runs/{shown}/", "run-done": f"/runs/{done}/", "run-failed": f"/runs/{failed}/",
            "new-run": f"/runs/new/?from={done}", "queue": "/queue/", "shelf": "/checkpoints/",
            "checkpoints": f"/runs/{done}/checkpoints/", "export": f"/exports/{export.pk}/",
            "try": f"/runs/{done}/try/", "datasets": "/datasets/",
            "dataset": f"/datasets/{self.world.version.dataset_id}/", "upload": "/datasets/upload",
            "nodes": "/fleet/nodes/", "node": f"/fleet/nodes/{self.world.nodes[0].name}/",
            "add-node": "/fleet/nodes/add", "preflight": "/fleet/clusters/pair/preflight",
            "identities": "/fleet/identities/", "destinations": "/deliveries/destinations/",
            "leftovers": "/fleet/leftovers/", "tokens": "/accounts/tokens/", "notices": "/accounts/notices/",
            "add-model": "/runs/models/new/", "compare": f"/runs/compare?run={shown}&run={done}",
        }  # fmt: skip


def _write(feed: Feed, points: int) -> None:
    for step in range(0, points, 10):
        feed.metrics(*(3.0,) * 10, after=step)
    connection.close()


def _read_until(done: threading.Event) -> None:
    """Read in one transaction, as a long report would; one that Django begins would be a writer's on SQLite."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        while not done.wait(0.05):
            cursor.execute("SELECT COUNT(*) FROM runs_event")
        cursor.execute("ROLLBACK")
    connection.close()


def sample(number: int) -> dict[str, object]:
    """Return a node's figures: two GPUs, the second nearly full."""
    gpus = [
        {"index": i, "used": (30 + 8 * i) * GIB, "total": 40 * GIB, "load": 0.9, "temperature": 61, "power": 250.0}
        for i in range(2)
    ]
    return {
        "ram_used": 90 * GIB + number, "ram_total": 256 * GIB, "disk_free": 900 * GIB, "disk_total": 3584 * GIB,
        "cpu": 0.4, "load": 8.0, "gpus": gpus,
    }  # fmt: skip
