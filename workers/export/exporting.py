"""An export beyond being a job: foretold first, then its shards brought to rank 0's node and held until it ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from training.spec.exportplan import ExportPlan
from training.spec.faults import Reason
from training.spec.folder import EXPORT_READS
from training.spec.job import ExportJob, export_settings
from training.spec.lint import Refused
from training.spec.plan import NodePlan, plan_export
from webapp.fleet.models import Node
from webapp.fleet.ssh import Host
from webapp.runs import actions, expected, journal, lifecycle
from webapp.runs.models import Checkpoint, Export, Run
from webapp.runs.states import ExportState

from .. import shards
from ..end.ending import End
from ..follow import streams
from ..group import Answer, Member
from ..launch import prepare
from ..nodejob.work import Bring, Work, ended_well, member_of, reason_of
from . import hold, leftovers, passport, planning

BETWEEN_TURNS = 2.0  # seconds, while the node is asked about another export
HOPELESS = {Reason.DATA, Reason.CHECKPOINT}  # what it is made from is gone, or not what was saved
STOPPED_THERE = "it was stopped on its node, and not from here: the node may have been going down"
WAITS_FOR = timedelta(minutes=20)  # a plan that nobody starts
NEVER_STARTED = "planned, and not started"


class Exporting(Work[Export]):
    model = Export

    def choose(self, job: Export) -> tuple[Node, dict[str, object]]:
        """The node of rank 0 holds the files that are common to all ranks."""
        placement = job.attempt.placements.select_related("node").get(rank=0)
        return placement.node, placement.slot

    def step(self, job: Export) -> float | None:
        if job.state == ExportState.PLANNING:
            return self.foretell(job)
        return self.wait(job) if job.state == ExportState.PLANNED else super().step(job)

    def queue(self, job: Export) -> float | None:
        """Choose the node, and ask it; one that was started before is not asked once more."""
        if (rest := _rest(job)) > 0:
            return rest
        if job.start > 1:
            return super().queue(job)
        job.node, job.slot = self.choose(job)
        return 0.0 if self._takes_turn(job, job.node) else BETWEEN_TURNS

    @transaction.atomic
    def _takes_turn(self, job: Export, node: Node) -> bool:
        """Let one export at a time be planned on a node: two would measure each other, and many stop the service."""
        Run.objects.select_for_update().get(pk=job.attempt.run_id)  # as move_job does
        Node.objects.select_for_update(no_key=True).get(pk=node.pk)
        if Export.objects.filter(node=node, state=ExportState.PLANNING).exclude(pk=job.pk).exists():
            return False
        job.save(update_fields=["node", "slot"])
        lifecycle.move_job(job, ExportState.PLANNING)
        return True

    def foretell(self, job: Export) -> float | None:
        """Ask the node. Only what will be exported holds its checkpoint against rotation meanwhile."""
        member, source = member_of(job), shards.source_of(job.checkpoint)
        if not job.waits:
            hold.put(job, source)
        env = prepare.environment(job.run.model.location)
        plan = planning.ask(job, member, source, self.job(job, member), env)
        if plan is not None and not self._keep(job, plan):
            raise _refusal(plan)
        return 0.0

    @transaction.atomic
    def _keep(self, job: Export, plan: ExportPlan) -> bool:
        """Write down what the node said, and go on; False where it can't work: that has to be written down, too."""
        lifecycle.lock(job.attempt.run_id)
        job.plan, job.planned_at = plan.model_dump(mode="json"), timezone.now()
        job.made_dtype, job.expected_seconds = plan.writing.dtype, expected.seconds(job, plan)
        job.save(update_fields=["plan", "planned_at", "made_dtype", "expected_seconds"])
        job.refresh_from_db(fields=["waits"])
        if plan.problems and not job.waits:
            return False
        lifecycle.move_job(job, ExportState.PLANNED if job.waits else ExportState.GATHERING)
        return True

    def wait(self, job: Export) -> float | None:
        """Nobody has said yet that it shall start; a plan that is left alone is let go."""
        if not job.waits:
            if job.foretold and job.foretold.problems:
                raise _refusal(job.foretold)
            lifecycle.move_job(job, ExportState.GATHERING)
            return 0.0
        left = ((job.planned_at or job.created_at) + WAITS_FOR - timezone.now()).total_seconds()
        if left > 0:
            return left
        lifecycle.move_job(job, ExportState.CANCELLED, reason=Reason.STOPPED, text=NEVER_STARTED)
        return None

    def bring(self, job: Export, member: Member) -> Bring:
        """Bring the shards there; hold the checkpoint wherever it is."""
        source = shards.source_of(job.checkpoint)
        hold.put(job, source)

        async def tell(done: int, total: int) -> None:
            await Export.objects.filter(pk=job.pk).aupdate(phase=expected.GATHER, done=done, total=total)

        async def together(host: Host) -> None:
            account = prepare.account(job.attempt, tell)
            await shards.bring_together(source, [source.place(member, host)], account, only=EXPORT_READS)

        return together

    def plan(self, job: Export, member: Member) -> NodePlan:
        env = prepare.environment(job.run.model.location)
        planned = plan_export(member.slot, self.job(job, member), member.folder, release=member.release, env=env)
        return replace(planned, files={**planned.files, member.folder.passport.name: passport.text(job)})

    def job(self, job: Export, member: Member) -> ExportJob:
        """Return what the node is told, or asked about."""
        run = job.run
        return ExportJob(
            checkpoint=str(shards.source_of(job.checkpoint).folder_on(member.slot)),
            model=run.model.location,
            revision=run.model.revision,
            out=str(member.folder.model),
            events=str(member.folder.events),
            passport=str(member.folder.passport),
            **export_settings(run.parsed_recipe()) | {"dtype": job.dtype, "adapter": job.adapter},
        )

    def start(self, job: Export) -> float | None:
        """One that an earlier start made, while its node was out of reach or just before it died, is not made again."""
        if job.start > 1:
            streams.open_for_job(job, member_of(job))
            settled = self.ask(job)
            job.refresh_from_db(fields=["files"])
            if job.files and settled.gone:
                leftovers.forget_record(job, member_of(job))
                return self.conclude(job, settled)
        return super().start(job)

    def fault(self, job: Export, exit: Answer) -> End | None:
        if job.files and (ended_well(exit) or job.state == ExportState.GATHERING):  # then an earlier start made it
            return None
        if exit.get("reason") in (Reason.STOPPED, Reason.STOPPED_UNSAVED):
            return End(Reason.STOPPED_UNSAVED, STOPPED_THERE)
        return End(reason_of(exit, Reason.PROOF), str(exit.get("text", "")))

    def is_tried_again(self, job: Export, reason: Reason) -> bool:
        return actions.is_retried(job, reason)

    def cancelled(self, job: Export) -> str:
        return NEVER_STARTED if job.waits else super().cancelled(job)

    def release(self, job: Export) -> None:
        if job.node is not None and not job.waits:
            hold.take_away(job, shards.source_of(job.checkpoint))

    def let_go(self, job: Export, reason: Reason | None) -> None:
        """What it has written stays only where it can be gone on from."""
        if reason is None or job.node is None or job.waits or not job.was_begun:
            return
        if job.cancel_asked_at or reason in HOPELESS or not Checkpoint.objects.usable().filter(pk=job.checkpoint.pk):
            leftovers.remove(job, member_of(job))
        job.kept = leftovers.measure(job, member_of(job))
        job.save(update_fields=["kept"])

    def after_failure(self, job: Export) -> None:
        """One whose job died goes on by itself; what it left on the node is not made again."""
        try:
            actions.retry(job)
        except Refused as refused:
            with transaction.atomic():
                journal.warn(job.attempt, f"export {job.pk} not taken up again: {refused}")


def _rest(job: Export) -> float:
    """Return for how many seconds one that was not asked for leaves its node in peace."""
    if not job.retried:
        return 0.0
    return (job.queued_at + actions.restart_delay(job.retried) - timezone.now()).total_seconds()


def _refusal(plan: ExportPlan) -> End:
    """Return the end of an export that can't work: every reason, nothing touched."""
    return End(plan.problems[0].reason, " ".join(str(found) for found in plan.problems))
