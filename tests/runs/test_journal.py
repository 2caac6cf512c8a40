"""The journal takes any line, once, in order; what a line means for rows is checked before it means anything."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.contrib.auth.models import User

from training.spec.events import Event as Line
from webapp.datasets.models import Dataset, Version
from webapp.fleet.models import Cluster, Identity, Node
from webapp.runs import actions, digest, journal, series
from webapp.runs.models import Attempt, Checkpoint, Event, Export, ModelSource, Placement, Run, Series, Stream

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(settings: Any) -> Attempt:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    user = User.objects.create(username="ada")
    cluster = Cluster.objects.create(name="pair")
    identity = Identity.objects.create(name="key", public_key="x", sealed_private_key="x")
    node = Node.objects.create(
        cluster=cluster, name="n0", address="10.0.0.1", user="ml", identity=identity, host_key="ssh-ed25519 AAAA",
        python="/usr/bin/python3", scratch="/scratch", accelerator=False,
    )  # fmt: skip
    model = ModelSource.objects.create(name="m", location="/m")
    dataset = Dataset.objects.create(name="d", owner=user)
    version = Version.objects.create(dataset=dataset, number=1, digest="0" * 64, rows=9, bytes=900)
    run = actions.create(actions.Order("r", "tiny", {}, model, version, cluster), user)
    attempt = actions.launch(run, "ada")
    actions.place(attempt, [node])
    return attempt


def stream(attempt: Attempt, source: str = "train@0") -> Stream:
    node = Node.objects.get()
    made, _ = Stream.objects.get_or_create(attempt=attempt, source=source, defaults={"node": node, "path": "/x"})
    return made


def line(seq: int, kind: str = "metrics", step: int | None = None, **data: Any) -> Line:
    return Line(seq, 1700000000.0 + seq, kind, step, data)


def put(attempt: Attempt, *lines: Line, source: str = "train@0") -> int:
    held = stream(attempt, source)
    return journal.record(held, lines, held.offset + 100 * len(lines))


def test_lines_get_the_run_s_next_numbers_without_gaps(attempt: Attempt) -> None:
    before = Run.objects.get().journal
    put(attempt, line(1), line(2))
    put(attempt, line(1, "sample", ram_used=1), source="node@0")
    numbers = Event.objects.filter(number__gt=before).order_by("number").values_list("number", "source", "seq")
    first = before + 1
    assert list(numbers) == [(first, "train@0", 1), (first + 1, "train@0", 2), (first + 2, "node@0", 1)]
    assert Run.objects.get().journal == first + 2


def test_the_same_lines_again_change_nothing(attempt: Attempt) -> None:
    held = stream(attempt)
    bad = [journal.Bad(50, "x")]
    assert journal.record(held, [line(1), line(2)], 200, bad) == 3
    stale = Stream.objects.get(pk=held.pk)
    stale.offset = stale.last_seq = 0  # a reader that began before
    assert journal.record(stale, [line(1), line(2)], 200, bad) == 0
    assert (stale.offset, stale.last_seq) == (200, 2)
    assert journal.record(stale, [line(2), line(3)], 300) == 1


def test_numbers_that_fall_back_do_not_block_what_follows(attempt: Attempt) -> None:
    assert put(attempt, line(5), line(5), line(3), line(6)) == 2
    assert put(attempt, line(7)) == 1


def test_what_a_database_cannot_hold_is_written_as_escapes(attempt: Attempt) -> None:
    put(attempt, line(1, "warning", text="a\0b\ud800", deep=[{"k\0": math.nan}]))
    assert Event.objects.get(kind="warning").data == {"text": "a\\x00b\\ud800", "deep": [{"k\\x00": "NaN"}]}


@pytest.mark.parametrize(
    ("kind", "step", "data"),
    [
        ("started", None, {}),
        ("started", None, {"world_size": "2", "total_steps": 4}),
        ("started", None, {"world_size": -1, "total_steps": 4}),
        ("checkpoint", None, {"nodes": 1, "node_rank": 0, "world_size": 1, "bytes": 1, "files": 1}),
        ("checkpoint", 3, {"nodes": 1, "node_rank": 0, "world_size": 1, "bytes": 1}),
        ("checkpoint", 3, {"nodes": True, "node_rank": 0, "world_size": 1, "bytes": 1, "files": 1}),
        ("checkpoint", 3, {"nodes": 1, "node_rank": 0, "world_size": 1, "bytes": 2**70, "files": 1}),
        ("checkpoint", 3, {"nodes": 1, "node_rank": 0, "world_size": 1, "bytes": 1, "files": -1}),
        ("checkpoint", 3, {"nodes": 2**15, "node_rank": 0, "world_size": 1, "bytes": 1, "files": 1}),
        ("checkpoint", 3, {"nodes": 1, "node_rank": 0, "world_size": 2**31, "bytes": 1, "files": 1}),
        ("started", None, {"world_size": 1, "total_steps": 2**31}),
        ("exit", None, {"reason": "vapour"}),
        ("exit", None, {"reason": []}),
        ("sample", None, {"gpus": 3}),
        ("sample", None, {"gpus": [{"used": 1}]}),
        ("progress", None, {"phase": "p" * 21, "done": 0, "total": 0}),
    ],
)
def test_a_line_that_breaks_its_promise_is_stored_flagged_and_means_nothing(
    attempt: Attempt, kind: str, step: int | None, data: dict[str, Any]
) -> None:
    source = "node@0" if kind in ("exit", "sample") else "train@0"
    assert put(attempt, line(1, kind, step, **data), line(2, "metrics", 1, loss=1.0), source=source) == 2
    assert digest.PROBLEM in Event.objects.get(kind=kind).data
    assert not Checkpoint.objects.exists()
    assert Placement.objects.get().exit is None
    assert Run.objects.get().step == 1
    assert {s.name for s in Series.objects.all()} == {"loss", "at"}


def exporting(attempt: Attempt) -> Export:
    """Return an export whose lines `put(..., source="export@<id>")` stores."""
    checkpoint = Checkpoint.objects.create(attempt=attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=checkpoint, dtype="float32")
    held = stream(attempt, f"export@{export.pk}")
    held.job_kind, held.job_id = "export", export.pk
    held.save()
    return export


GOOD = {"name": "x", "size": 1, "sha256": "a" * 64}


@pytest.mark.parametrize(
    "files",
    [
        {},
        ["config.json"],
        [GOOD | {"name": "../x"}],
        [GOOD | {"sha256": "a\nSet-Cookie: b"}],
    ],
)
def test_an_export_s_line_that_breaks_its_promise_means_nothing(attempt: Attempt, files: Any) -> None:
    export = exporting(attempt)
    put(attempt, line(1, "exported", files=files, proof={}, bytes=1, dtype="float32"), source=f"export@{export.pk}")
    assert digest.PROBLEM in Event.objects.get(kind="exported").data
    export.refresh_from_db()
    assert (export.files, export.bytes) == ([], 0)


def test_a_job_s_lines_are_its_own(attempt: Attempt) -> None:
    """What an export writes is no news of the attempt, whatever the kind of the line."""
    export = exporting(attempt)
    told = [line(1, "progress", phase="stream", done=3, total=9), line(2, "metrics", 7, loss=1.0)]
    put(
        attempt,
        *told,
        line(3, "exported", files=[GOOD], proof={}, bytes=1, dtype="float32"),
        source=f"export@{export.pk}",
    )
    export.refresh_from_db()
    assert (export.phase, export.done, export.total, export.files) == ("stream", 3, 9, [GOOD])
    assert Run.objects.get().step == 0


def test_numbers_become_points_the_odd_ones_too(attempt: Attempt) -> None:
    data = {"loss": math.nan, "grad_norm": math.inf, "text": "x", "flag": True, "huge": 10**400, "lr": 1}
    put(attempt, line(1, "metrics", 1, **data), line(2, "evaluation", 1, loss=0.5))
    shown = {
        name: [found.values, found.steps]
        for name, _ in series.names(attempt.run)
        if (found := series.read(attempt.run, name))
    }
    found = {"loss": ["NaN"], "grad_norm": ["Infinity"], "lr": [1.0], "eval/loss": [0.5], "at": [1700000001.0]}
    assert shown == {name: [values, [1]] for name, values in found.items()}
    last = {s.name: (s.last_x, s.last) for s in Series.objects.all()}
    assert last == {name: (1.0, values[0]) for name, values in found.items()}


def test_a_sample_is_drawn_per_node_and_gpu(attempt: Attempt) -> None:
    put(attempt, line(1, "sample", ram_used=5, gpus=[{"index": 1, "used": 7, "load": 0.5}]), source="node@0")
    assert {s.name: s.axis for s in Series.objects.all()} == {
        "node0/ram_used": "time", "node0/gpu1/used": "time", "node0/gpu1/load": "time",
    }  # fmt: skip


def progress() -> tuple[int, int]:
    run = Run.objects.get()
    return run.step, run.total_steps


def test_progress_never_goes_back_within_an_attempt(attempt: Attempt) -> None:
    put(attempt, line(1, "started", None, world_size=1, total_steps=9), line(2, step=5), line(3, step=4))
    assert progress() == (5, 9)
    put(attempt, line(4, "started", None, world_size=1, total_steps=9))
    assert progress() == (5, 9)


def test_late_lines_of_an_old_attempt_leave_the_progress_alone(attempt: Attempt) -> None:
    put(attempt, line(1, "started", None, world_size=1, total_steps=9), line(2, step=7))
    saved = Checkpoint.objects.create(attempt=attempt, step=4, nodes=1, world_size=1)
    newer = Attempt.objects.create(run=attempt.run, number=2, resume_from=saved)
    put(newer, line(1, "started", None, world_size=1, total_steps=12))
    assert progress() == (4, 12)
    put(newer, line(2, step=5))
    put(attempt, line(3, step=8), line(4, "started", None, world_size=1, total_steps=9))
    assert progress() == (5, 12)


def test_a_step_that_comes_twice_keeps_its_last_value(attempt: Attempt) -> None:
    put(attempt, line(1, "metrics", 1, loss=1.0))
    put(attempt, line(2, "metrics", 1, loss=2.0))
    found = series.read(attempt.run, "loss")
    assert found is not None
    assert (found.values, Series.objects.get(name="loss").last) == ([2.0], 2.0)


def test_a_checkpoint_counts_when_every_node_has_written(attempt: Attempt) -> None:
    part = {"nodes": 2, "world_size": 2, "bytes": 10, "files": ["a", "b"]}
    put(attempt, line(1, "checkpoint", 3, node_rank=0, **part))
    assert not Checkpoint.objects.get().usable
    put(attempt, line(1, "checkpoint", 3, node_rank=1, **part), source="train@1")
    found = Checkpoint.objects.get()
    assert (found.usable, found.bytes) == (True, 20)
    put(attempt, line(2, "checkpoint_deleted", 3, node_rank=0), source="train@1")
    assert not Checkpoint.objects.get().usable


def test_an_exit_lands_on_its_node(attempt: Attempt) -> None:
    put(attempt, line(1, "exit", reason="completed", code=0), source="node@0")
    assert Placement.objects.get().exit == {"reason": "completed", "code": 0, "at": 1700000001.0}


def test_a_warning_of_the_service_is_numbered_too(attempt: Attempt) -> None:
    journal.warn(attempt, "careful")
    journal.warn(attempt, "careful")
    assert Event.objects.filter(kind="warning", source="service:warning").count() == 2
