"""The passport of an export, of what the service's rows say; kept with the export, so that it is composed once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from training.spec import history
from training.spec.passport import (
    AttemptFacts,
    CheckpointFacts,
    DataFacts,
    ModelFacts,
    NodeFacts,
    Passport,
    RunFacts,
    commands,
    hardware,
    versions,
)
from webapp.datasets.models import Version
from webapp.runs.models import Attempt, Checkpoint, Export, Placement
from webapp.runs.readings import PROBLEM
from webapp.runs.replay import written

HEAD = "train@0"  # rank 0's node tells what all ranks have in common


def text(export: Export) -> str:
    """Return passport.json for the export's node; the same on every start, whatever the run did meanwhile."""
    if not export.passport:
        export.passport = compose(export).model_dump(mode="json")
        export.save(update_fields=["passport"])
    # sorted, because PostgreSQL hands objects back with their names in another order
    told = Passport.model_validate_json(json.dumps(export.passport, sort_keys=True))
    return told.model_copy(update={"export": None}).model_dump_json(indent=2) + "\n"


def compose(export: Export) -> Passport:
    run, checkpoint = export.run, export.checkpoint
    chain = list(_chain(checkpoint))
    told = [history.told(_lines(attempt), upto) for attempt, upto in chain]
    model, owner = run.model, run.owner.username if run.owner else ""
    asked_by = export.requested_by.username if export.requested_by else ""
    return Passport(
        composed_of="rows",
        run=RunFacts(id=run.pk, name=run.name, preset=run.preset, owner=owner),
        recipe=run.recipe,
        model=ModelFacts(name=model.name, location=model.location, revision=model.revision),
        dataset=_dataset(run.dataset, told[-1]),
        attempts=tuple(_attempt(attempt, one) for (attempt, _), one in zip(chain, told, strict=True)),
        losses=history.losses(told),
        cost=history.cost(told),
        checkpoint=CheckpointFacts(
            name=checkpoint.name, step=checkpoint.step, nodes=checkpoint.nodes, world_size=checkpoint.world_size
        ),
        asked_by=asked_by,
    )


def _chain(checkpoint: Checkpoint) -> Iterator[tuple[Attempt, int]]:
    """Yield (attempt, step up to which it counts), oldest first."""
    before = checkpoint.attempt.resume_from
    if before is not None:
        yield from _chain(before)
    yield checkpoint.attempt, checkpoint.step


def _lines(attempt: Attempt) -> Iterator[history.Line]:
    for row in written(attempt, HEAD, [str(kind) for kind in history.KINDS]):
        if PROBLEM not in row.data:
            yield history.Line(row.kind, row.step, row.at.timestamp(), row.data)


def _attempt(attempt: Attempt, told: history.Told) -> AttemptFacts:
    before = attempt.resume_from
    return AttemptFacts(
        number=attempt.number,
        restart=attempt.restart,
        release=attempt.release,
        resumed_from=f"attempt {before.attempt.number}, {before.name}" if before else "",
        restored=told.resumed.get("parts") or {},
        first_step=(before.step if before else 0) + 1,
        last_step=told.upto,
        started_at=told.started_at or _seconds(attempt.started_at),
        ended_at=told.ended_at,
        facts=told.facts or attempt.facts,
        nodes=tuple(_node(placement) for placement in attempt.placements.select_related("node")),
    )


def _seconds(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def _node(placement: Placement) -> NodeFacts:
    check = placement.facts.get("check") or placement.node.facts  # of before launches were written down: the last one
    return NodeFacts(
        rank=placement.rank,
        name=str(placement.slot.get("name", placement.node.name)),
        processes=placement.slot.get("processes"),
        commands=commands(placement.facts.get("command", ())),
        variables=tuple(placement.facts.get("variables", ())),
        hardware=hardware(check),
        versions=versions(check),
    )


def _dataset(version: Version, told: history.Told) -> DataFacts:
    return DataFacts(
        name=version.dataset.name,
        version=version.number,
        sha256=version.digest,
        format=version.format,
        rows=version.rows,
        test_rows=version.test_rows,
        bytes=version.bytes,
        trained=told.counts,
    )
