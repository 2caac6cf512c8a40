"""What each part of a run page shows. The first page and every refresh of a part are made from the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from training.spec.events import Kind
from webapp.show import Bar

from . import actions, jobkinds, journal, series
from .about import about
from .actions.end import KIND as STOP_KIND
from .actions.queue import KIND as QUEUE_KIND
from .actions.queue import MOVABLE
from .costs import cost
from .ending import ending
from .expected import progress
from .facts import panel
from .failure import failure
from .files import launch_files
from .gpu_words import gpu_note
from .models import Attempt, Checkpoint, Event, Export, Placement, Run
from .queue.waiting import waiting
from .readings import PROBLEM
from .shelf import acts as shelf_acts
from .shelf import moves, room, rows
from .shelf.fates import kept
from .states import ON_NODES, RunState

Context = dict[str, Any]


def header(run: Run) -> Context:
    attempt = run.attempt
    first, last = series.ends(run, "loss")
    return {
        "first_loss": first,
        "last_loss": last,
        "left": (left := time_left(run, attempt)),
        "tokens": tokens_seen(run),
        "cost": cost(run, left),
        "phase": _newest(attempt, Kind.PHASE),
        "warning": _warning(run, attempt),
        "unreachable": attempt.placements.exclude(unreachable_since=None).select_related("node") if attempt else [],
        "attempt": attempt,
        "waiting": waiting(run),
        "restart": _restart(run, attempt),
    }


def _restart(run: Run, attempt: Attempt | None) -> Context | None:
    """Return what there is to say of a newest attempt that the service made by itself."""
    if attempt is None or not attempt.restart:
        return None
    failed = run.transitions.filter(new=RunState.FAILED).order_by("-id").first()
    return {
        "number": attempt.restart,
        "limit": run.parsed_recipe().limits.restarts,
        "step": attempt.resume_from.step if attempt.resume_from else None,
        "rests": run.state == RunState.QUEUED and attempt.not_before and attempt.not_before > timezone.now(),
        "at": attempt.not_before,
        "why": failed.cause if failed else "",
    }


def time_left(run: Run, attempt: Attempt | None) -> timedelta | None:
    """Return the time that the steps to come take at this attempt's mean pace; None before it has one."""
    if attempt is None or attempt.started_at is None or run.state != RunState.RUNNING:
        return None
    done = run.step - (attempt.resume_from.step if attempt.resume_from else 0)
    if done <= 0:
        return None
    return (timezone.now() - attempt.started_at) / done * max(0, run.total_steps - run.step)


def tokens_seen(run: Run) -> int | None:
    """Return the tokens that the newest attempt has seen, over all that it goes on from."""
    _, found = series.ends(run, "num_tokens")
    return int(found) if isinstance(found, float) else None


def _newest(attempt: Attempt | None, kind: str) -> Event | None:
    if attempt is None:
        return None
    # With the run, whose index has the kind: an attempt's events are mostly samples.
    return Event.objects.filter(run=attempt.run_id, kind=kind, attempt=attempt).order_by("-number").first()


def _warning(run: Run, attempt: Attempt | None) -> Event | None:
    """Return the newest warning; one of a rank that made no progress has had its day when a later step is there."""
    found = _newest(attempt, Kind.WARNING)
    past = found is not None and "idle_seconds" in found.data and run.step > (found.step or 0)
    return None if past else found


def failed(run: Run) -> Context:
    """Why it failed, or why the attempt did that it was restarted after."""
    newest = actions.newest_checkpoint(run) if run.can_resume else None
    return {"failure": failure(run), "newest": newest, "can_resume": actions.may_resume(run, newest)}


def acts(run: Run) -> Context:
    """What a person may do with the run now."""
    usable = usable_checkpoints(run)
    newest = actions.newest_checkpoint(run)
    can_resume = actions.may_resume(run, newest)
    return {
        "can_launch": run.state == RunState.DRAFT,
        "can_move": run.state in MOVABLE,
        "can_resume": can_resume,
        "brings": moves.foretold(newest) if can_resume and newest else "",
        "newest": newest,
        "usable": usable,
        "dtypes": dict(Export._meta.get_field("dtype").choices or []),
        "stop_seconds": run.parsed_recipe().limits.stop_seconds,
        "can_hurry": run.state == RunState.STOPPING and not (run.attempt and run.attempt.stop_now_at),
        "adapter_choices": actions.adapter_choices(run),
        "recipe_adapter": run.parsed_recipe().export.adapter,
        "recipe_dtype": run.recipe.get("export", {}).get("dtype", ""),
    }


def usable_checkpoints(run: Run) -> list[Checkpoint]:
    found = Checkpoint.objects.usable().filter(attempt__run=run)
    return list(found.select_related("attempt").order_by("-attempt__number", "-step"))


@dataclass(frozen=True)
class NodeMemory:
    """A node's newest sample. `kind` says which memory the bars are: of GPUs, or of the host where there is none."""

    name: str
    kind: str
    bars: list[Bar]
    sample: Event


def memory(run: Run) -> Context:
    attempt = run.attempt
    found = [_node_memory(placement) for placement in attempt.placements.select_related("node")] if attempt else []
    return {"nodes": [node for node in found if node], "on_nodes": run.state in ON_NODES}


def _node_memory(placement: Placement) -> NodeMemory | None:
    rows = Event.objects.filter(attempt=placement.attempt_id, source=f"node@{placement.rank}", kind=Kind.SAMPLE)
    sample = rows.order_by("-seq").first()
    if sample is None or PROBLEM in sample.data:
        return None
    data = sample.data
    mine = placement.slot.get("gpus") or ()
    if gpus := [gpu for gpu in data.get("gpus") or () if not mine or gpu["index"] in mine]:
        bars = [Bar(f"GPU {gpu['index']}", gpu.get("used") or 0, gpu.get("total") or 0, gpu_note(gpu)) for gpu in gpus]
        return NodeMemory(placement.node.name, "GPU memory", bars, sample)
    bar = Bar("RAM", data.get("ram_used") or 0, data.get("ram_total") or 0)
    return NodeMemory(placement.node.name, "host memory, no GPU", [bar], sample)


def checkpoints(run: Run) -> Context:
    return {
        "rows": rows.of_run(run),
        "can_resume": run.can_resume,
        "kept": kept(run),
        "room": room.tightest(room.rooms(run)),
    }


def exports(run: Run) -> Context:
    rows = Export.objects.filter(checkpoint__attempt__run=run, waits=False)
    return {
        "exports": [(row, progress(row)) for row in rows.select_related("checkpoint__attempt", "node")],
        "newest": actions.newest_checkpoint(run),
    }


def history(run: Run) -> Context:
    kinds = [STOP_KIND, QUEUE_KIND, *(kind.model.KIND for kind in jobkinds.every())]
    return {
        "asked": run.events.filter(kind__in=kinds, data__has_key="text").order_by("-number"),
        "moves": run.transitions.select_related("attempt").order_by("-id"),
        "shelf": shelf_acts.told(run),
        "brought": run.events.filter(kind=journal.SHARDS).order_by("-number"),
        "attempts": run.attempts.select_related("resume_from").prefetch_related("placements__node").order_by("-number"),
    }


def facts(run: Run) -> Context:
    attempt = run.attempt
    return {"attempt": attempt, "panel": panel(attempt)}


def files(run: Run) -> Context:
    return {"files": launch_files(run)}


PARTS: dict[str, Callable[[Run], Context]] = {
    "header": header,
    "failure": failed,
    "ending": ending,
    "actions": acts,
    "memory": memory,
    "checkpoints": checkpoints,
    "exports": exports,
    "history": history,
    "about": about,
    "facts": facts,
    "files": files,
}
