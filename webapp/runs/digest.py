"""What new lines mean for rows: points, checkpoints, progress. Runs inside the journal's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from django.db.models import Q, QuerySet

from training.spec.events import Kind, number
from training.spec.faults import Reason

from ..dispatch import advance_job, advance_run
from . import jobkinds
from .counts import INT, SMALL_INT, not_counts
from .models import Checkpoint, CheckpointPart, Event, Placement, Point, Run, Series, Stream

PROBLEM = "problem"  # beside an event's data: why it means nothing
Numbers = dict[tuple[str, str], dict[float, float]]  # (series, axis) -> {x: value}


def flag(stream: Stream, events: Iterable[Event]) -> None:
    """Mark each event whose data is not what its kind promises; it is stored, and means nothing for rows."""
    checks = CHECKS | dict(jobkinds.of(stream.job_kind).checks) if stream.job_kind else CHECKS
    for event in events:
        if (check := checks.get(event.kind)) and (problem := check(event)):
            event.data = {**event.data, PROBLEM: problem}


def take(stream: Stream, events: Sequence[Event]) -> None:
    """Digest `events`, all new, flagged and all of `stream`."""
    sound = [event for event in events if PROBLEM not in event.data]
    _store_points(stream, _numbers(sound))
    for event in sound:
        if stream.job_kind:
            _of_job(stream, event)
        elif handler := HANDLERS.get(event.kind):
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
    return not_counts(event, "world_size", "total_steps", most=INT)


def _bad_checkpoint(event: Event) -> str:
    if event.step is None:
        return "step is missing"
    if not isinstance(event.data.get("files"), list) and (problem := not_counts(event, "files", most=INT)):
        return problem
    return (
        not_counts(event, "nodes", "node_rank", most=SMALL_INT)
        or not_counts(event, "world_size", most=INT)
        or (not_counts(event, "bytes"))
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
    return not_counts(event, "done", "total")


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
    rank = int(stream.source.partition("@")[2])
    rows = Placement.objects.filter(attempt_id=stream.attempt_id, rank=rank)
    # the exit file, which somebody else may have read by now, says the same and has the evidence as well; and what we
    # wrote of a node that was lost stays
    rows.filter(Q(exit__isnull=True) | ~Q(exit__has_any_keys=["evidence", "ours"])).update(
        exit=event.data | {"at": event.at.timestamp()}
    )
    advance_run(event.run_id)


def _of_job(stream: Stream, event: Event) -> None:
    """Take a line of a job of one node: its progress and its end mean the same for all kinds."""
    kind, job_id = jobkinds.of(stream.job_kind), stream.job_id or 0
    if event.kind == Kind.EXIT:
        advance_job(stream.job_kind, job_id)
    elif event.kind == Kind.PROGRESS:
        data = event.data
        rows = kind.model._default_manager.filter(pk=job_id)
        rows.update(phase=data["phase"], done=data["done"], total=data["total"])
    elif handler := kind.handlers.get(event.kind):
        handler(job_id, event)


HANDLERS: dict[str, Callable[[Stream, Event], None]] = {
    Kind.STARTED: _started,
    Kind.METRICS: _progress_of_run,
    Kind.CHECKPOINT: _checkpoint,
    Kind.CHECKPOINT_DELETED: _checkpoint_deleted,
    Kind.EXIT: _exit,
}
CHECKS: dict[str, Callable[[Event], str]] = {
    Kind.STARTED: _bad_started,
    Kind.CHECKPOINT: _bad_checkpoint,
    Kind.EXIT: _bad_exit,
    Kind.SAMPLE: _bad_sample,
    Kind.PROGRESS: _bad_progress,
}
