"""A delivery beyond being a job: on the node that holds the export, or carried by the worker to another node."""

from __future__ import annotations

from typing import Any

from training.spec.faults import Reason
from training.spec.lint import Refused
from training.spec.plan import NodePlan, plan_job
from webapp.deliveries.actions import job_of
from webapp.deliveries.models import Delivery
from webapp.deliveries.places import secrets_for
from webapp.fleet.models import Node
from webapp.fleet.vault import WrongKey
from webapp.runs import lifecycle, rank_env

from ..end.ending import End
from ..end.settle import Settled
from ..group import Answer, Member
from ..nodejob.work import Work, ended_well, reason_of
from . import carry


class Delivering(Work[Delivery]):
    model = Delivery

    def choose(self, job: Delivery) -> tuple[Node, dict[str, Any]]:
        """The node that holds the export, as it is now, but with the scratch folder that the export was made in."""
        node, slot = job.export.node, job.export.slot
        if node is None or slot is None:
            raise End(Reason.DATA, "the export has no node")
        return node, vars(node.slot()) | {"scratch": slot["scratch"]}

    def start(self, job: Delivery) -> float | None:
        if job.to_node is None:
            return super().start(job)
        lifecycle.move_job(job, job.STATES.running)
        return 0.0

    def look(self, job: Delivery) -> float | None:
        if job.to_node is None:
            return super().look(job)
        if not job.result:
            return carry.step(job)
        return self.conclude(job, Settled())

    def plan(self, job: Delivery, member: Member) -> NodePlan:
        """The secrets go into the env file alone, which is taken away when the job has ended."""
        try:
            what = job_of(job.export, job.target, job.replace, events=str(member.folder.events))
            env = rank_env.operators() | secrets_for(job)
        except (Refused, WrongKey) as error:
            raise End(Reason.CONFIGURATION, str(error)) from error
        return plan_job(member.slot, ("deliver",), what, member.folder, release=member.release, env=env)

    def fault(self, job: Delivery, exit: Answer) -> End | None:
        if job.result and (job.to_node is not None or ended_well(exit)):
            return None
        return End(reason_of(exit, Reason.DESTINATION), str(exit.get("text", "")))
