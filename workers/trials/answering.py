"""A trial beyond being a job: one at a time on a node, and on one that a run holds only beside that run."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError

from training.spec.answer import AnswerJob, Asked
from training.spec.faults import Reason
from training.spec.plan import NodePlan, plan_job
from webapp.fleet.models import Claim, Node
from webapp.runs import lifecycle
from webapp.runs.models import Export
from webapp.trials import actions, queue
from webapp.trials.models import Trial

from ..end.ending import End
from ..end.settle import Settled
from ..group import Answer, Member
from ..launch import prepare
from ..nodejob import leavings
from ..nodejob.work import Work, ended_well, exit_of, member_of, reason_of

WAIT_SECONDS = 5.0
BESIDE = {"device": "cpu", "threads": 1, "nice": 19, "reserve": 0.25}  # in an AnswerJob, where a run holds the node
CUT = (Reason.TIME_LIMIT,)  # what answers may be cut by without anything being wrong
TAKEN = "a run took the node, and a trial gives way: ask again, beside the run or when it is over"


class Answering(Work[Trial]):
    model = Trial
    look_seconds = 2.0

    def choose(self, job: Trial) -> tuple[Node, dict[str, object]]:
        """The node was chosen with the models; as it is now."""
        assert job.node is not None
        if not job.node.in_service or not job.node.host_key:
            raise End(Reason.LAUNCH, f"node {job.node.name} was taken out of service")
        return job.node, vars(job.node.slot())

    def queue(self, job: Trial) -> float | None:
        """Wait until no other trial is at work there, or was asked before."""
        if queue.ahead_of(job).exists():
            return WAIT_SECONDS
        job.node, job.slot = self.choose(job)
        job.beside = Claim.objects.filter(node=job.node).exists()
        job.save(update_fields=["slot", "beside"])
        try:
            lifecycle.move_job(job, job.STATES.preparing)
        except IntegrityError:  # of two at once, the other was first
            job.refresh_from_db()
            return WAIT_SECONDS
        return 0.0

    def plan(self, job: Trial, member: Member) -> NodePlan:
        run = job.run
        # Without a GPU to be seen, no memory of one can be taken, whatever a library does at its start.
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if job.beside else {}
        what = AnswerJob.model_validate(
            {
                "models": self._asked(job),
                "prompts": job.prompts,
                "sampling": job.sampling,
                "seconds": job.seconds,
                "events": str(member.folder.events),
                **(BESIDE if job.beside else {}),
            }
        )
        env = prepare.environment(run.model.location) | hidden
        return plan_job(member.slot, ("answer",), what, member.folder, release=member.release, env=env)

    def _asked(self, job: Trial) -> list[Asked]:
        run, recipe = job.run, job.run.parsed_recipe()
        base = Asked(
            name="base",
            model=run.model.location,
            revision=run.model.revision,
            trust_remote_code=recipe.model.trust_remote_code,
            template=recipe.data.template,
        )
        exports = Export.objects.in_bulk([one["export"] for one in job.asked if one["export"]])

        def one(asked: dict[str, Any]) -> Asked:
            if asked["export"] is None:
                return base
            export = exports[asked["export"]]
            folder = asked["folder"]
            if export.adapter == "adapter":
                return base.model_copy(update={"name": asked["name"], "adapter": folder})
            return base.model_copy(update={"name": asked["name"], "model": folder, "revision": ""})

        return [one(asked) for asked in job.asked]

    def look(self, job: Trial) -> float | None:
        """A training that comes has the node to itself."""
        if self._is_taken(job) and job.cancel_asked_at is None:
            leavings.signal(member_of(job), "term")
        return super().look(job)

    def _is_taken(self, job: Trial) -> bool:
        return not job.beside and Claim.objects.filter(node=job.node).exists()

    def fault(self, job: Trial, exit: Answer) -> End | None:
        if ended_well(exit) or exit.get("reason") in CUT:
            return None
        if exit.get("reason") in (Reason.STOPPED, Reason.STOPPED_UNSAVED) and not job.cancel_asked_at:
            return End(Reason.STOPPED, TAKEN if self._is_taken(job) else "it was stopped on the node")
        return End(reason_of(exit, Reason.RANK_FAILED), str(exit.get("text", "")))

    def conclude(self, job: Trial, settled: Settled) -> float | None:
        look = super().conclude(job, settled)
        exit = exit_of(job) or {}
        if exit.get("reason") in CUT:  # done, and why it is not all that it could be is worth a word
            rows = Trial.objects.filter(pk=job.pk, state=job.STATES.done)
            rows.update(reason=exit["reason"], reason_text=str(exit.get("text", "")))
        if job.state == job.STATES.failed and job.reason_text == TAKEN:
            actions.again(job)
        queue.call_next(job)
        return look

    def fail(self, job: Trial, reason: Reason, text: str) -> None:
        super().fail(job, reason, text)
        queue.call_next(job)
