"""What new lines mean for rows: points, checkpoints, progress. Runs inside the journal's transaction."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from django.db.models import QuerySet

from training.spec.events import Kind, number
from training.spec.faults import Reason
from training.spec.job import FORMATS

from ..dispatch import advance_export, advance_run
from .archive import Archive
from .models import Checkpoint, CheckpointPart, Event, Export, Placement, Point, Run, Series, Stream

PROBLEM = "problem"  # beside an event's data: why it means nothing
SMALL_INT, INT, BIG_INT = 2**15 - 1, 2**31 - 1, 2**62  # SQLite takes more, PostgreSQL refuses the row
SHA256 = re.compile(r"[0-9a-f]{64}")
Numbers = dict[tuple[str, str], dict[float, float]]  # (series, axis) -> {x: value}


def flag(events: Iterable[Event]) -> None:
    """Mark each event whose data is not what its kind promises; it is stored, and means nothing for rows."""
    for event in events:
        if (check := CHECKS.get(event.kind)) and (problem := check(event)):
            event.data = {**event.data, PROBLEM: problem}


def take(stream: Stream, events: Sequence[Event]) -> None:
    """Digest `events`, all new, flagged and all of `stream`."""
    sound = [event for event in events if PROBLEM not in event.data]
    _store_points(stream, _numbers(sound))
    for event in sound:
        if handler := HANDLERS.get(event.kind):
            handler(stream, event)


def _numbers(events: Iterable[Event]) -> Numbers:
    found: Numbers = defaultdict(dict)
    for event in events:
        for name, axis, x, value in readings(event):
            found[name[:100], axis][x] = value
    return found


def readings(event: Event) -> Iterable[tuple[str, str, float, float]]:
    """Yield (series, axis, x, value) for every number of `event` that is drawn."""
    if PROBLEM in event.data:
        return
    if event.kind in (Kind.METRICS, Kind.EVALUATION) and event.step is not None:
        prefix = "eval/" if event.kind == Kind.EVALUATION else ""
        for key, raw in event.data.items():
            if (value := _number(raw)) is not None:
                yield f"{prefix}{key}", "step", float(event.step), value
    elif event.kind == Kind.SAMPLE and event.source.startswith("node@"):
        yield from _sample_readings(f"node{event.source.partition('@')[2]}", event)


def _sample_readings(node: str, event: Event) -> Iterable[tuple[str, str, float, float]]:
    at = event.at.timestamp()
    for key, raw in event.data.items():
        if (value := _number(raw)) is not None:
            yield f"{node}/{key}", "time", at, value
    for gpu in event.data.get("gpus", []):
        for key, raw in gpu.items():
            if key != "index" and (value := _number(raw)) is not None:
                yield f"{node}/gpu{gpu['index']}/{key}", "time", at, value


def _number(raw: object) -> float | None:
    try:
        return number(raw)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _store_points(stream: Stream, found: Numbers) -> None:
    if not found:
        return
    series = _series(stream, dict(found.keys()))
    points = [Point.of(series[name], x, value) for (name, _), values in found.items() for x, value in values.items()]
    Point.objects.bulk_create(
        points, update_conflicts=True, unique_fields=["series", "x"], update_fields=["value", "odd"]
    )


def _series(stream: Stream, axes: dict[str, str]) -> dict[str, Series]:
    rows = Series.objects.filter(attempt_id=stream.attempt_id, name__in=axes)
    known = {row.name: row for row in rows}
    if missing := [Series(attempt_id=stream.attempt_id, name=n, axis=a) for n, a in axes.items() if n not in known]:
        Series.objects.bulk_create(missing, ignore_conflicts=True)
        known = {row.name: row for row in rows.all()}
    return known


def _bad_started(event: Event) -> str:
    return _not_counts(event, "world_size", "total_steps", most=INT)


def _bad_checkpoint(event: Event) -> str:
    if event.step is None:
        return "step is missing"
    if not isinstance(event.data.get("files"), list) and (problem := _not_counts(event, "files", most=INT)):
        return problem
    return (
        _not_counts(event, "nodes", "node_rank", most=SMALL_INT)
        or _not_counts(event, "world_size", most=INT)
        or (_not_counts(event, "bytes"))
    )


def _bad_exit(event: Event) -> str:
    reason = event.data.get("reason")
    return "" if reason in list(Reason) else f"reason is {reason!r}"


def _bad_sample(event: Event) -> str:
    gpus = event.data.get("gpus", [])
    sound = isinstance(gpus, list) and all(isinstance(g, dict) and isinstance(g.get("index"), int) for g in gpus)
    return "" if sound else "gpus is not a list of objects with an index"


def _bad_progress(event: Event) -> str:
    phase = event.data.get("phase")
    if not isinstance(phase, str) or len(phase) > 20:
        return f"phase is {phase!r}"
    return _not_counts(event, "done", "total")


def _bad_exported(event: Event) -> str:
    data = event.data
    if not isinstance(data.get("files"), list) or not isinstance(data.get("proof"), dict):
        return "files or proof is missing"
    if wrong := [file for file in data["files"] if not _is_file(file)]:
        return f"files holds {wrong[0]!r}"[:200]
    try:
        Archive("model", tuple((file["name"], file["size"]) for file in data["files"]))
    except ValueError as error:
        return f"files: {error}"[:200]
    if data.get("dtype") not in FORMATS:
        return f"dtype is {data.get('dtype')!r}"[:200]
    return _not_counts(event, "bytes")


def _is_file(file: object) -> bool:
    """Tell whether pages, the API and downloads can show it: a hash goes into a header, a size is counted with."""
    if not isinstance(file, dict) or not isinstance(file.get("name"), str) or type(file.get("size")) is not int:
        return False
    return bool(SHA256.fullmatch(str(file.get("sha256"))))


def _not_counts(event: Event, *names: str, most: int = BIG_INT) -> str:
    """Return what is wrong with fields that must be whole numbers from 0 to `most`, as their columns hold them."""
    for name in names:
        value = event.data.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            return f"{name} is {value!r}"[:200]
    return ""


def _started(stream: Stream, event: Event) -> None:
    first = stream.attempt.started_at is None
    stream.attempt.facts = event.data
    stream.attempt.world_size = event.data["world_size"]
    stream.attempt.started_at = event.at
    stream.attempt.save(update_fields=["facts", "world_size", "started_at"])
    resumed = stream.attempt.resume_from
    begin = {"step": resumed.step if resumed else 0} if first else {}
    _runs_of_newest(stream).update(total_steps=event.data["total_steps"], **begin)
    advance_run(event.run_id)


def _runs_of_newest(stream: Stream) -> QuerySet[Run]:
    """Return the run alone, or nothing where a newer attempt is there: what comes late from an old one isn't news."""
    attempt = stream.attempt
    return Run.objects.filter(pk=attempt.run_id).exclude(attempts__number__gt=attempt.number)


def _progress_of_run(stream: Stream, event: Event) -> None:
    if event.step is not None:
        _runs_of_newest(stream).filter(step__lt=event.step).update(step=event.step)


def _checkpoint(stream: Stream, event: Event) -> None:
    data = event.data
    checkpoint, _ = Checkpoint.objects.get_or_create(
        attempt_id=stream.attempt_id,
        step=event.step or 0,
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
    Checkpoint.objects.filter(attempt_id=stream.attempt_id, step=event.step or 0, deleted_at=None).update(
        deleted_at=event.at
    )


def _exit(stream: Stream, event: Event) -> None:
    if stream.export_id is not None:
        advance_export(stream.export_id)
        return
    rank = int(stream.source.partition("@")[2])
    Placement.objects.filter(attempt_id=stream.attempt_id, rank=rank).update(
        exit=event.data | {"at": event.at.timestamp()}
    )
    advance_run(event.run_id)


def _export_progress(stream: Stream, event: Event) -> None:
    data = event.data
    Export.objects.filter(pk=stream.export_id or 0).update(phase=data["phase"], done=data["done"], total=data["total"])


def _exported(stream: Stream, event: Event) -> None:
    data = event.data
    found = {name: data[name] for name in ("bytes", "files", "proof")} | {"made_dtype": data["dtype"]}
    passport = {"passport": data["passport"]} if isinstance(data.get("passport"), dict) else {}
    Export.objects.filter(pk=stream.export_id or 0).update(**found, **passport)


HANDLERS: dict[str, Callable[[Stream, Event], None]] = {
    Kind.STARTED: _started,
    Kind.METRICS: _progress_of_run,
    Kind.CHECKPOINT: _checkpoint,
    Kind.CHECKPOINT_DELETED: _checkpoint_deleted,
    Kind.EXIT: _exit,
    Kind.PROGRESS: _export_progress,
    Kind.EXPORTED: _exported,
}
CHECKS: dict[str, Callable[[Event], str]] = {
    Kind.STARTED: _bad_started,
    Kind.CHECKPOINT: _bad_checkpoint,
    Kind.EXIT: _bad_exit,
    Kind.SAMPLE: _bad_sample,
    Kind.PROGRESS: _bad_progress,
    Kind.EXPORTED: _bad_exported,
}
