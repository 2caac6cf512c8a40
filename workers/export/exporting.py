"""An export beyond being a job: the shards brought to the node of rank 0, and held there until it has ended."""

from __future__ import annotations

from training.spec.faults import Reason
from training.spec.job import ExportJob, export_settings
from training.spec.plan import NodePlan, plan_export
from webapp.fleet.models import Node
from webapp.fleet.ssh import Host
from webapp.runs.models import Export

from ..end.ending import End
from ..group import Answer, Member
from ..launch import prepare, shards
from ..nodejob.work import Bring, Work, ended_well, reason_of
from . import hold


class Exporting(Work[Export]):
    model = Export

    def choose(self, job: Export) -> tuple[Node, dict[str, object]]:
        """The node of rank 0 holds the files that are common to all ranks."""
        placement = job.attempt.placements.select_related("node").get(rank=0)
        return placement.node, placement.slot

    def bring(self, job: Export, member: Member) -> Bring:
        """Bring the shards there; hold the checkpoint wherever it is."""
        source = shards.source_of(job.checkpoint)
        hold.put(job, source)

        async def together(host: Host) -> None:
            await shards.bring_together(source, [shards.Place(member.name, host, str(source.folder_on(member.slot)))])

        return together

    def plan(self, job: Export, member: Member) -> NodePlan:
        run = job.run
        what = ExportJob(
            checkpoint=str(shards.source_of(job.checkpoint).folder_on(member.slot)),
            model=run.model.location,
            revision=run.model.revision,
            out=str(member.folder.model),
            events=str(member.folder.events),
            **export_settings(run.parsed_recipe()) | {"dtype": job.dtype, "adapter": job.adapter},
        )
        env = prepare.environment(run.model.location)
        return plan_export(member.slot, what, member.folder, release=member.release, env=env)

    def fault(self, job: Export, exit: Answer) -> End | None:
        if ended_well(exit) and job.files:
            return None
        return End(reason_of(exit, Reason.PROOF), str(exit.get("text", "")))

    def let_go(self, job: Export) -> None:
        if job.node is not None:
            hold.take_away(job, shards.source_of(job.checkpoint))
