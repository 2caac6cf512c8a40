"""Streams find their export again, and samples are folded or rows, whichever way the tables are moved."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.runs.test_folding import fill, seen
from tests.runs.test_journal import attempt  # noqa: F401
from webapp.runs.folding import BLOCK, fold
from webapp.runs.models import Attempt, Checkpoint, Export, SampleBlock, Sketch, Stream

BEFORE = [("runs", "0009_export_dtype_base")]


def migrate(targets: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.mark.django_db(transaction=True)
def test_rows_are_whole_forwards_and_backwards(attempt: Attempt) -> None:  # noqa: F811
    node = attempt.placements.get().node
    saved = Checkpoint.objects.create(attempt=attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=saved, dtype="float32")
    for source, job in (("train@0", {}), (f"export@{export.pk}", {"job_kind": "export", "job_id": export.pk})):
        Stream.objects.create(attempt=attempt, source=source, node=node, path="/x", **job)
    fold(fill(attempt, 2 * BLOCK + 5))
    fold(Stream.objects.get(source="train@0"))
    before, sketch = seen(attempt.run), Sketch.objects.values().get()
    now = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = migrate(BEFORE)
        rows = old.get_model("runs", "Stream").objects.exclude(source="node@0")
        assert {row.source: row.export_id for row in rows} == {"train@0": None, f"export@{export.pk}": export.pk}
        assert old.get_model("runs", "Event").objects.filter(kind="sample").count() == 2 * BLOCK + 5
        losses = old.get_model("runs", "Point").objects.filter(series__name="loss").order_by("x")
        assert list(losses.values_list("value", "odd"))[7:10] == [(1 / 8, ""), (None, "NaN"), (1 / 10, "")]
        assert losses.count() == old.get_model("runs", "Event").objects.filter(kind="metrics").count() == 2 * BLOCK + 10
        points = old.get_model("runs", "Point").objects.filter(series__name="node0/gpu0/load")
        assert (points.count(), points.filter(odd="NaN").count()) == (2 * BLOCK + 3, 1)
    finally:
        migrate(now)
    assert SampleBlock.objects.count() == 2
    assert seen(attempt.run) == before
    assert Sketch.objects.values().get() == sketch
    kept = {row.source: (row.job_kind, row.job_id) for row in Stream.objects.exclude(source="node@0")}
    assert kept == {"train@0": ("", None), f"export@{export.pk}": ("export", export.pk)}
