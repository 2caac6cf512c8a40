"""Streams find their export again, whichever way the tables are moved."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.runs.test_journal import attempt  # noqa: F401
from webapp.runs.models import Attempt, Checkpoint, Export, Stream

BEFORE = [("runs", "0009_export_dtype_base")]


def migrate(targets: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.mark.django_db(transaction=True)
def test_streams_keep_their_export_forwards_and_backwards(attempt: Attempt) -> None:  # noqa: F811
    node = attempt.placements.get().node
    saved = Checkpoint.objects.create(attempt=attempt, step=1, nodes=1, world_size=1)
    export = Export.objects.create(checkpoint=saved, dtype="float32")
    for source, job in (("train@0", {}), (f"export@{export.pk}", {"job_kind": "export", "job_id": export.pk})):
        Stream.objects.create(attempt=attempt, source=source, node=node, path="/x", **job)
    now = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = migrate(BEFORE).get_model("runs", "Stream").objects
        assert {row.source: row.export_id for row in old.all()} == {"train@0": None, f"export@{export.pk}": export.pk}
    finally:
        migrate(now)
    kept = {row.source: (row.job_kind, row.job_id) for row in Stream.objects.all()}
    assert kept == {"train@0": ("", None), f"export@{export.pk}": ("export", export.pk)}
