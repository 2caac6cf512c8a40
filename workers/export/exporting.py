"""Take one export one step further: queued, gathering, running, ready or failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.job import ExportJob, export_settings
from training.spec.plan import NodePlan, plan_export
from webapp import dispatch
from webapp.fleet.ssh import SshError, Unreachable
from webapp.runs import lifecycle
from webapp.runs.models import Event, Export
from webapp.runs.states import EXPORT_ENDED, ExportState

from .. import group, lease
from ..end import finish, watch
from ..end.ending import End
from ..end.settle import Settled, settle
from ..follow import streams
from ..group import Member
from ..launch import prepare, release, shards
from . import hold

log = logging.getLogger(__name__)
LOOK_SECONDS = 15.0
RETRY_SECONDS = 5.0
RETRY_FOR = timedelta(minutes=5)
SILENCE = timedelta(seconds=30)


def advance(export_id: int) -> None:
    """Do the one step that the export's state asks for, unless another does it now."""
    export = Export.objects.filter(pk=export_id).first()
    if export is None:
        return
    with lease.hold(export) as held:
        if not held or export.has_ended:
            return
        seconds = _step(export)
    if seconds is not None and lease.due_in(export, seconds):
        dispatch.advance_export(export_id)


def _step(export: Export) -> float | None:
    try:
        return STEPS[export.state](export)
    except OperationalError:
        raise  # nothing is wrong with the export, the sweep comes back
    except SshError as error:
        if isinstance(error, Unreachable) and timezone.now() < export.created_at + RETRY_FOR:
            return RETRY_SECONDS
        end = End(error.reason, str(error))
    except End as error:
        end = error
    except Exception as error:  # a bug of ours must not leave the export without an end
        log.exception("%s: %s", export, export.state)
        end = End(Reason.LAUNCH, f"an unexpected error of the service: {type(error).__name__}: {error}")
    export.refresh_from_db()
    _fail(export, end.reason, end.text)
    return None


def _queued(export: Export) -> float:
    """Choose the node: that of rank 0, which holds the files that are common to all ranks."""
    placement = export.checkpoint.attempt.placements.select_related("node").get(rank=0)
    export.node, export.slot = placement.node, placement.slot
    export.save(update_fields=["node", "slot"])
    lifecycle.move_export(export, ExportState.GATHERING)
    return 0.0


def _gathering(export: Export) -> float:
    """Bring the shards there, put the job's files and start it."""
    member = _member(export)
    source = shards.source_of(export.checkpoint)
    plan = _plan(export, member, source)
    hold.put(export, source)
    streams.open_for_export(export, member)
    async_to_sync(_on_node)(member, source, plan)
    lifecycle.move_export(export, ExportState.RUNNING)
    return LOOK_SECONDS


async def _on_node(member: Member, source: shards.Source, plan: NodePlan) -> None:
    async with AsyncExitStack() as stack:
        host = (await group.connect_all([member], stack))[member.rank]
        await prepare.put_release(member, host)
        await shards.bring_together(source, [shards.Place(member.name, host, str(source.folder_on(member.slot)))])
        if not await host.exists(str(plan.folder.pid)):
            await prepare.put_plan(host, plan)
        await host.check(plan.argv)


def _plan(export: Export, member: Member, source: shards.Source) -> NodePlan:
    run = export.run
    job = ExportJob(
        checkpoint=str(source.folder_on(member.slot)),
        model=run.model.location,
        revision=run.model.revision,
        out=str(member.folder.model),
        events=str(member.folder.events),
        **export_settings(run.parsed_recipe()) | {"dtype": export.dtype, "adapter": export.adapter},
    )
    env = prepare.environment(run.model.location)
    return plan_export(member.slot, job, member.folder, release=member.release, env=env)


def _running(export: Export) -> float | None:
    """End the export once its job has ended; ask the node when nothing was heard for a while."""
    if _exit(export) is None and not _is_silent(export):
        return LOOK_SECONDS
    member = _member(export)
    group.on_each([member], prepare.put_release)  # an updated service asks with its own code
    settled = settle([member], streams.of_export(export))
    if settled.errors:
        raise settled.errors[member.rank]
    if not settled.gone:
        return _insist(export, member)
    _conclude(export, settled)
    return None


def _insist(export: Export, member: Member) -> float:
    if _exit(export) is None:
        return LOOK_SECONDS  # silent, and at work
    finish.kill([member])
    return 1.0


def _conclude(export: Export, settled: Settled) -> None:
    export.refresh_from_db()
    exit = _exit(export) or finish.exit_of(settled.status[0]) or {}
    streams.close(streams.of_export(export))
    hold.take_away(export, shards.source_of(export.checkpoint))
    reason = str(exit.get("reason", ""))
    if reason == Reason.COMPLETED and export.files:
        lifecycle.move_export(export, ExportState.READY, reason=Reason.COMPLETED)
        return
    known = Reason(reason) if reason in set(Reason) and reason != Reason.COMPLETED else Reason.PROOF
    lifecycle.move_export(export, ExportState.FAILED, reason=known, text=str(exit.get("text", "")))


def _fail(export: Export, reason: Reason, text: str) -> None:
    """End the export; what was started of it is ended where the node can be reached."""
    if export.state in EXPORT_ENDED:
        return
    if export.node is not None:
        finish.kill([_member(export)])
        hold.take_away(export, shards.source_of(export.checkpoint))
    streams.close(streams.of_export(export))
    lifecycle.move_export(export, ExportState.FAILED, reason=reason, text=text)


def _member(export: Export) -> Member:
    return group.of_export(export, release.current().digest)


def _exit(export: Export) -> dict[str, object] | None:
    """Return what the export's supervisor said last; None while it has not ended."""
    last = Event.objects.filter(attempt=export.checkpoint.attempt, source=f"exportnode@{export.pk}", kind="exit").last()
    return dict(last.data) if last else None


def _is_silent(export: Export) -> bool:
    heard = watch.heard(export.checkpoint.attempt, f"exportnode@{export.pk}")
    return (heard or export.created_at) < timezone.now() - SILENCE


STEPS: dict[str, Callable[[Export], float | None]] = {
    ExportState.QUEUED: _queued,
    ExportState.GATHERING: _gathering,
    ExportState.RUNNING: _running,
}
