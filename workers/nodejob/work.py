"""The steps of a job of one node. A kind says which node, what is brought there, what runs, and how it has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Generic, TypeVar

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from training.spec.faults import Reason
from training.spec.plan import NodePlan
from webapp.fleet.models import Node
from webapp.fleet.ssh import Host
from webapp.runs import lifecycle, sources
from webapp.runs.models import Event, NodeJob

from .. import group
from ..end import finish
from ..end.ending import End
from ..end.heard import heard as last_heard
from ..end.settle import Settled, settle
from ..follow import streams
from ..group import Answer, Member
from ..launch import prepare, release
from . import again, heed, leavings

J = TypeVar("J", bound=NodeJob)
Bring = Callable[[Host], Awaitable[None]]
SOON = 1.0
SILENCE = timedelta(seconds=30)


class Work(Generic[J]):
    """Each step can be done twice, and be killed anywhere; it returns in how many seconds to look again, None: never.

    `look_seconds`: between two looks at a job that is heard of. `grace`: between asking it to stop and ending it.
    """

    model: type[J]
    look_seconds = 15.0
    grace = timedelta(seconds=10)

    def choose(self, job: J) -> tuple[Node, dict[str, object]]:
        """Return the node and its slot, as job.node and job.slot keep them; raise End where there is none."""
        raise NotImplementedError

    def plan(self, job: J, member: Member) -> NodePlan:
        """Return what runs there."""
        raise NotImplementedError

    def bring(self, job: J, member: Member) -> Bring | None:
        """Return what brings to the connected node all that the job needs; it asks the database beforehand."""

    def fault(self, job: J, exit: Answer) -> End | None:
        """Return why the ended job counts as failed; None where it has done what it was for."""
        raise NotImplementedError

    def let_go(self, job: J, reason: Reason | None) -> None:
        """See to what lies on the node: the job has ended for `reason`, None: it has done what it was for."""

    def is_tried_again(self, job: J, reason: Reason) -> bool:
        """Tell whether `after_failure` is going to try once more where the job fails for `reason`."""
        return False

    def cancelled(self, job: J) -> str:
        """Return what is said of a job that was cancelled."""
        return "cancelled on request"

    def release(self, job: J) -> None:
        """Undo what `bring` took hold of: nothing needs it any more. One that is tried again keeps it."""

    def after_failure(self, job: J) -> None:
        """Do what is to be done by itself once the job counts as failed, such as trying again."""

    def step(self, job: J) -> float | None:
        """Do what the state asks for."""
        states = job.STATES
        steps = {states.queued: self.queue, states.preparing: self.start, states.running: self.look}
        return steps[job.state](job)

    def queue(self, job: J) -> float | None:
        job.node, job.slot = self.choose(job)
        job.save(update_fields=["node", "slot"])
        lifecycle.move_job(job, job.STATES.preparing)
        return 0.0

    def start(self, job: J) -> float | None:
        """Bring everything there and start the job, once."""
        member = member_of(job)
        plan, bring = self.plan(job, member), self.bring(job, member)
        streams.open_for_job(job, member)
        if not async_to_sync(heed.unless_cancelled)(job, _on_node(member, plan, bring, job.start)):
            return 0.0
        lifecycle.move_job(job, job.STATES.running, also=job.starting())
        return self.look_seconds

    def look(self, job: J) -> float | None:
        """End the job once its command has ended; ask the node when nothing was heard for a while."""
        ended = exit_of(job)
        if ended is None and not _is_silent(job):
            return self.look_seconds
        settled = self.ask(job)
        if settled.gone:
            return self.conclude(job, settled)
        if ended is None:
            return self.look_seconds  # silent, and at work
        finish.kill([member_of(job)])
        return SOON

    def cancel(self, job: J) -> float | None:
        """Ask the job to stop, then end it; cancelled is what has no process left."""
        if not job.was_begun:
            return self.conclude(job, Settled())
        settled = self.ask(job)
        if settled.gone and not self.may_start(job, settled):
            return self.conclude(job, settled)
        asked = job.cancel_asked_at or timezone.now()
        how = "term" if timezone.now() < asked + self.grace else "kill"
        leavings.signal(member_of(job), how)
        return SOON

    def may_start(self, job: J, settled: Settled) -> bool:
        """Tell whether a late `start` could still find a job there: one that has no exit file yet."""
        return any(status.get("state") in ("absent", "ready") for status in settled.status.values())

    def ask(self, job: J) -> Settled:
        """Ask the node how the job stands, and read to its end what it wrote if it is over; raise what SSH says."""
        members = [member_of(job)]
        for error in group.errors(group.on_each(members, prepare.put_release)):
            raise error  # an updated service asks with its own code
        settled = settle(members, streams.of_job(job))
        for error in settled.errors.values():
            raise error
        return settled

    def conclude(self, job: J, settled: Settled) -> float | None:
        """End a job of which nothing is left."""
        job.refresh_from_db()
        exit = exit_of(job) or finish.exit_of(settled.status.get(0, {})) or {}
        end = self.fault(job, exit)
        if end is not None and not job.cancel_asked_at:
            self._failed(job, end.reason, end.text)
            return None
        self._leave(job, Reason.STOPPED if end else None)
        if end is None:
            self._done(job)
        else:
            lifecycle.move_job(job, job.STATES.cancelled, reason=Reason.STOPPED, text=self.cancelled(job))
        return None

    def _done(self, job: J) -> None:
        """Whoever started it may have died before saying so, and whoever wants it away found it done after all."""
        states = job.STATES
        for before, after in ((states.queued, states.preparing), (states.preparing, states.running)):
            if job.state == before:
                lifecycle.move_job(job, after)
        lifecycle.move_job(job, states.done, reason=Reason.COMPLETED)

    def fail(self, job: J, reason: Reason, text: str) -> None:
        """End the job; what was started of it is ended where the node can be reached."""
        if job.has_ended:
            return
        if job.was_begun:
            finish.kill([member_of(job)])
            settle([member_of(job)], streams.of_job(job))
        self._failed(job, reason, text)

    def _failed(self, job: J, reason: Reason, text: str) -> None:
        """What it holds is let go before it counts as failed, and not between two tries."""
        again = self.is_tried_again(job, reason)
        self._leave(job, reason, holding=again)
        with transaction.atomic():  # a failed job is tried again, or will never be: also where we are killed here
            if lifecycle.move_job(job, job.STATES.failed, reason=reason, text=text):
                self.after_failure(job)
        job.refresh_from_db()
        if again and job.has_ended:
            self.release(job)

    def _leave(self, job: J, reason: Reason | None, *, holding: bool = False) -> None:
        streams.close(streams.of_job(job))
        if job.was_begun:
            leavings.take_away_env(job, member_of(job))
        self.let_go(job, reason)
        if not holding:
            self.release(job)


async def _on_node(member: Member, plan: NodePlan, bring: Bring | None, start: int) -> None:
    async with AsyncExitStack() as stack:
        host = (await group.connect_all([member], stack))[member.rank]
        await prepare.put_release(member, host)
        if bring:
            await bring(host)
        fresh = await again.ready(member, host, start) if start > 1 else not await host.exists(str(plan.folder.pid))
        if fresh:
            await prepare.put_plan(host, plan)
        await host.check(plan.argv)


def member_of(job: NodeJob) -> Member:
    return group.of_job(job, release.current().digest)


def exit_of(job: NodeJob) -> Answer | None:
    """Return what the job's supervisor said last of its present start; None while that has not ended."""
    rows = Event.objects.filter(attempt=job.attempt, source=sources.node(job.KIND, job.pk), kind="exit")
    last = rows.last()
    return dict(last.data) if last and last.data.get("start", 1) == job.start else None


def ended_well(exit: Answer) -> bool:
    return exit.get("reason") == Reason.COMPLETED


def reason_of(exit: Answer, otherwise: Reason) -> Reason:
    """Return the exit's reason; `otherwise` where it names none, or claims a success that nothing shows."""
    found = str(exit.get("reason", ""))
    return Reason(found) if found in set(Reason) and found != Reason.COMPLETED else otherwise


def _is_silent(job: NodeJob) -> bool:
    heard = last_heard(job.attempt, sources.node(job.KIND, job.pk))
    return (heard or job.created_at) < timezone.now() - SILENCE
