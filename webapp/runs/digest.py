"""What new lines mean for rows: points, checkpoints, progress. Runs inside the journal's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from training.spec.events import Kind, number

from ..dispatch import advance_export, advance_run
from .models import Checkpoint, CheckpointPart, Event, Export, Placement, Point, Run, Series, Stream

Numbers = dict[tuple[str, str], dict[float, float]]  # (series, axis) -> {x: value}


def take(stream: Stream, events: Sequence[Event]) -> None:
    """Digest `events`, all new and all of `stream`."""
    _store_points(stream, _numbers(stream, events))
    for event in events:
        if handler := HANDLERS.get(event.kind):
            handler(stream, event)


def _numbers(stream: Stream, events: Iterable[Event]) -> Numbers:
    found: Numbers = defaultdict(dict)
    for event in events:
        for name, axis, x, value in readings(event):
            found[name, axis][x] = value
    return found


def readings(event: Event) -> Iterable[tuple[str, str, float, float]]:
    """Yield (series, axis, x, value) for every number of `event` that is drawn."""
    if event.kind in (Kind.METRICS, Kind.EVALUATION) and event.step is not None:
        prefix = "eval/" if event.kind == Kind.EVALUATION else ""
        for key, raw in event.data.items():
            if (value := number(raw)) is not None:
                yield f"{prefix}{key}", "step", float(event.step), value
    elif event.kind == Kind.SAMPLE and event.source.startswith("node@"):
        yield from _sample_readings(f"node{event.source.partition('@')[2]}", event)


def _sample_readings(node: str, event: Event) -> Iterable[tuple[str, str, float, float]]:
    at = event.at.timestamp()
    for key, raw in event.data.items():
        if (value := number(raw)) is not None:
            yield f"{node}/{key}", "time", at, value
    for gpu in event.data.get("gpus", []):
        for key, raw in gpu.items():
            if key != "index" and (value := number(raw)) is not None:
                yield f"{node}/gpu{gpu['index']}/{key}", "time", at, value


def _store_points(stream: Stream, found: Numbers) -> None:
    for (name, axis), values in found.items():
        series, _ = Series.objects.get_or_create(attempt_id=stream.attempt_id, name=name[:100], defaults={"axis": axis})
        Point.objects.bulk_create(
            [Point.of(series, x, value) for x, value in values.items()],
            update_conflicts=True,
            unique_fields=["series", "x"],
            update_fields=["value", "odd"],
        )


def _started(stream: Stream, event: Event) -> None:
    stream.attempt.facts = event.data
    stream.attempt.world_size = event.data.get("world_size", 0)
    stream.attempt.started_at = event.at
    stream.attempt.save(update_fields=["facts", "world_size", "started_at"])
    Run.objects.filter(pk=event.run_id).update(total_steps=event.data.get("total_steps", 0))
    advance_run(event.run_id)


def _progress_of_run(stream: Stream, event: Event) -> None:
    Run.objects.filter(pk=event.run_id).update(step=event.step or 0)


def _checkpoint(stream: Stream, event: Event) -> None:
    data = event.data
    checkpoint, _ = Checkpoint.objects.get_or_create(
        attempt_id=stream.attempt_id,
        step=event.step,
        defaults={"nodes": data["nodes"], "world_size": data["world_size"], "created_at": event.at},
    )
    CheckpointPart.objects.update_or_create(
        checkpoint=checkpoint,
        node_rank=data["node_rank"],
        defaults={
            "bytes": data["bytes"],
            "files": data["files"] if isinstance(data["files"], int) else len(data["files"]),
        },
    )
    if checkpoint.completed_at is None and checkpoint.parts.count() == checkpoint.nodes:
        checkpoint.completed_at = event.at
        checkpoint.save(update_fields=["completed_at"])


def _checkpoint_deleted(stream: Stream, event: Event) -> None:
    Checkpoint.objects.filter(attempt_id=stream.attempt_id, step=event.step, deleted_at=None).update(
        deleted_at=event.at
    )


def _exit(stream: Stream, event: Event) -> None:
    if stream.export_id is not None:
        advance_export(stream.export_id)
        return
    rank = int(stream.source.partition("@")[2])
    Placement.objects.filter(attempt_id=stream.attempt_id, rank=rank).update(exit=event.data)
    advance_run(event.run_id)


def _export_progress(stream: Stream, event: Event) -> None:
    data = event.data
    Export.objects.filter(pk=stream.export_id).update(phase=data["phase"], done=data["done"], total=data["total"])


def _exported(stream: Stream, event: Event) -> None:
    data = event.data
    Export.objects.filter(pk=stream.export_id).update(bytes=data["bytes"], files=data["files"], proof=data["proof"])


HANDLERS: dict[str, Callable[[Stream, Event], None]] = {
    Kind.STARTED: _started,
    Kind.METRICS: _progress_of_run,
    Kind.CHECKPOINT: _checkpoint,
    Kind.CHECKPOINT_DELETED: _checkpoint_deleted,
    Kind.EXIT: _exit,
    Kind.PROGRESS: _export_progress,
    Kind.EXPORTED: _exported,
}
