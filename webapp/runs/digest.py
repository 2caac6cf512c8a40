"""What new lines mean for rows: series, checkpoints, progress. Runs inside the journal's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django.db.models import Max, Q, QuerySet

from training.spec.events import Kind
from training.spec.faults import Reason

from ..dispatch import advance_job, advance_run
from . import jobkinds, sketches
from .counts import INT, SMALL_INT, not_counts
from .each import raise_each, update_each
from .fresh import Fresh
from .models import Attempt, Checkpoint, CheckpointPart, Placement, Run, Series, Stream
from .models.series import columns
from .news import News, Points
from .readings import PROBLEM, Told
from .serieskeys import series_ids


def flag(stream: Stream, events: Iterable[Fresh]) -> None:
    """Mark each event whose data is not what its kind promises; it is stored, and means nothing for rows."""
    checks = CHECKS | dict(jobkinds.of(stream.job_kind).checks) if stream.job_kind else CHECKS
    for event in events:
        if (check := checks.get(event.kind)) and (problem := check(event)):
            event.mark(PROBLEM, problem)


def take(digested: Iterable[tuple[Stream, Sequence[Fresh]]]) -> None:
    """Digest events, all new and flagged, each with the other ones of its stream."""
    news = News()
    reached: dict[int, tuple[Stream, int]] = {}  # by attempt: the last step
    for stream, events in digested:
        for event in events:
            if PROBLEM in event.data:
                continue
            news.add(event)
            if stream.job_kind:
                _of_job(stream, event)
            elif event.kind == Kind.METRICS and event.step is not None:
                before = reached.get(event.attempt_id, (stream, 0))[1]
                reached[event.attempt_id] = stream, max(before, event.step)
            elif handler := HANDLERS.get(event.kind):
                handler(stream, event)
    points = news.points()
    _store_last(points)
    sketches.take(points)
    _progress({stream.attempt: step for stream, step in reached.values()})


def _progress(reached: dict[Attempt, int]) -> None:
    """Move each run on to the step that its newest attempt has reached; what comes late from an old one isn't news."""
    runs = Run.objects.filter(pk__in={attempt.run_id for attempt in reached})
    now = {pk: at for pk, *at in runs.annotate(newest=Max("attempts__number")).values_list("pk", "newest", "step")}
    moved = [
        (step, attempt.run_id)
        for attempt, step in reached.items()
        if attempt.number == now[attempt.run_id][0] and step > now[attempt.run_id][1]
    ]
    update_each(Run, ["step"], moved)


def _store_last(found: Points) -> None:
    """Make the rows of series that are new, and move those over steps on; their points stay in lines (see folding)."""
    if not found:
        return
    ids = series_ids(found.keys())
    ends = [(ids[key[:2]], *max(points.items())) for key, points in found.items() if key.axis == "step"]
    rows = [(pk, x, *columns(value)) for pk, x, value in ends]
    raise_each(Series, "last_x", ("last_value", "last_odd"), rows)


def _bad_started(event: Told) -> str:
    return not_counts(event, "world_size", "total_steps", most=INT)


def _bad_checkpoint(event: Told) -> str:
    if event.step is None:
        return "step is missing"
    if not isinstance(event.data.get("files"), list) and (problem := not_counts(event, "files", most=INT)):
        return problem
    return (
        not_counts(event, "nodes", "node_rank", most=SMALL_INT)
        or not_counts(event, "world_size", most=INT)
        or (not_counts(event, "bytes"))
    )


def _bad_exit(event: Told) -> str:
    reason = event.data.get("reason")
    return "" if reason in list(Reason) else f"reason is {reason!r}"


def _bad_sample(event: Told) -> str:
    gpus = event.data.get("gpus", [])
    sound = isinstance(gpus, list) and all(isinstance(g, dict) and isinstance(g.get("index"), int) for g in gpus)
    return "" if sound else "gpus is not a list of objects with an index"


def _bad_progress(event: Told) -> str:
    phase = event.data.get("phase")
    if not isinstance(phase, str) or len(phase) > 20:
        return f"phase is {phase!r}"
    return not_counts(event, "done", "total")


def _started(stream: Stream, event: Told) -> None:
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


def _checkpoint(stream: Stream, event: Told) -> None:
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


def _checkpoint_deleted(stream: Stream, event: Told) -> None:
    Checkpoint.objects.filter(attempt_id=stream.attempt_id, step=event.step or 0, deleted_at=None).update(
        deleted_at=event.at
    )


def _exit(stream: Stream, event: Told) -> None:
    rank = int(stream.source.partition("@")[2])
    rows = Placement.objects.filter(attempt_id=stream.attempt_id, rank=rank)
    # the exit file, which somebody else may have read by now, says the same and has the evidence as well; and what we
    # wrote of a node that was lost stays
    rows.filter(Q(exit__isnull=True) | ~Q(exit__has_any_keys=["evidence", "ours"])).update(
        exit=event.data | {"at": event.at.timestamp()}
    )
    advance_run(event.run_id)


def _of_job(stream: Stream, event: Told) -> None:
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


HANDLERS: dict[str, Callable[[Stream, Told], None]] = {
    Kind.STARTED: _started,
    Kind.CHECKPOINT: _checkpoint,
    Kind.CHECKPOINT_DELETED: _checkpoint_deleted,
    Kind.EXIT: _exit,
}
CHECKS: dict[str, Callable[[Told], str]] = {
    Kind.STARTED: _bad_started,
    Kind.CHECKPOINT: _bad_checkpoint,
    Kind.EXIT: _bad_exit,
    Kind.SAMPLE: _bad_sample,
    Kind.PROGRESS: _bad_progress,
}
