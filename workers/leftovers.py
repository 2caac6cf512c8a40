"""Ask a node what runs there, and end one job of it that a person has pointed at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.spec.jobname import JobName, told
from webapp import dispatch
from webapp.fleet import changes
from webapp.fleet.models import Node
from webapp.fleet.ssh import CommandFailed, Host, SshError
from webapp.leftovers import actions, known
from webapp.leftovers.models import LOST_SECONDS, Leftover, NodeLook

from . import group
from .group import Answer, Member
from .launch import release
from .preflight.node import member_of

LOOK_EVERY = timedelta(minutes=5)
FORGET_AFTER = timedelta(days=1)
KILL_SECONDS = 180.0
ASK_SECONDS = 60.0  # so that nodes whose disk hangs, often all of a cluster at once, leave workers for the rest


def sweep(now: datetime) -> None:
    """Send what is due: a look at each node every few minutes, an end that was asked for and is not proven."""
    unlooked = actions.nodes().filter(in_service=True, look=None)
    NodeLook.objects.bulk_create([NodeLook(node=node) for node in unlooked], ignore_conflicts=True)
    for look in NodeLook.objects.filter(due_at__lte=now, node__in=actions.nodes().filter(in_service=True)):
        if NodeLook.objects.filter(pk=look.pk, due_at=look.due_at).update(due_at=now + LOOK_EVERY):
            dispatch.send(dispatch.LOOK_AT_NODE, look.node_id)
    for row in Leftover.objects.filter(end_due_at__lte=now, ended_at=None, problem=""):
        again = now + timedelta(seconds=LOST_SECONDS)
        if Leftover.objects.filter(pk=row.pk, end_due_at=row.end_due_at).update(end_due_at=again):
            dispatch.send(dispatch.END_LEFTOVER, row.pk)


def look_soon() -> None:
    """A service that has just started asks all nodes: who knows what went on without it."""
    NodeLook.objects.update(due_at=timezone.now())


def look(node_id: int) -> None:
    """Ask one node and write down what it said; a node that has gone is none."""
    node = Node.objects.select_related("identity").filter(pk=node_id).first()
    if node is None:
        return
    asked_at = timezone.now()
    answer = group.on_each([member_of(node)], _ask)[0]
    if isinstance(answer, SshError):
        NodeLook.objects.update_or_create(node=node, defaults={"problem": f"{answer.why}. {answer.fix}"})
        return
    with transaction.atomic():
        NodeLook.objects.update_or_create(node=node, defaults={"problem": "", "asked_at": asked_at})
        _keep(node, answer["jobs"], asked_at)


async def _ask(member: Member, host: Host) -> Answer:
    try:
        async with asyncio.timeout(ASK_SECONDS):
            await release.put(host, member.slot.scratch)
            return await group.training(member, host, "orphans", str(member.scratch.root))
    except TimeoutError as error:
        why = f"no answer in {ASK_SECONDS:.0f} s; look whether {member.scratch.root} hangs"
        raise CommandFailed(member.name, "asking what runs there", why) from error


def _keep(node: Node, jobs: Iterable[dict[str, Any]], asked_at: datetime) -> None:
    """Rows of what is there; what a person had ended is proven ended, what went by itself is forgotten."""
    seen = []
    for job in jobs:
        name = _name(job["kind"], job["folder"])
        if why := known.why(node, name, asked_at):
            seen.append(_row(node, job, why, asked_at).pk)
    gone = Leftover.objects.filter(node=node, ended_at=None, seen_at__lt=asked_at).exclude(pk__in=seen)
    gone.exclude(end_asked_at=None).update(ended_at=asked_at, problem="")
    gone.filter(end_asked_at=None).delete()
    Leftover.objects.filter(node=node, ended_at__lt=asked_at - FORGET_AFTER).delete()


def _name(kind: str | None, folder: str) -> JobName | None:
    """Return whose folder it is, None where the node found no name of ours in it."""
    return told(folder) if kind else None


def _row(node: Node, job: dict[str, Any], why: Leftover.Why, asked_at: datetime) -> Leftover:
    name = _name(job["kind"], job["folder"])
    facts = {
        "why": why,
        "kind": name.kind if name else "",
        "run": name.run if name else None,
        "number": name.number if name else None,
        "supervised": job["supervisor"] is not None,
        "processes": len(job["processes"]),
        "began_at": asked_at - timedelta(seconds=float(job["age_seconds"])),
        "seen_at": asked_at,
    }
    # what was ended and is there again is another job: nobody has asked for its end
    Leftover.objects.filter(node=node, folder=str(job["folder"]), ended_at__isnull=False).delete()
    row, _ = Leftover.objects.update_or_create(node=node, folder=str(job["folder"])[:1000], defaults=facts)
    return row


def end(leftover_id: int) -> None:
    """End the job on its node and write down that nothing of it is left. One that is at work again is left alone."""
    row = Leftover.objects.select_related("node__identity").filter(pk=leftover_id, ended_at=None, problem="").first()
    if row is None or row.end_asked_at is None:
        return
    name = _name(row.kind, row.folder)
    if known.why(row.node, name, timezone.now()) is None:
        Leftover.objects.filter(pk=row.pk).update(problem="it is at work for a run again: stop that run instead")
        return
    folder = row.folder

    async def kill(member: Member, host: Host) -> Answer:
        await release.put(host, member.slot.scratch)
        return await group.training(member, host, "signal", folder, "kill", seconds=KILL_SECONDS)

    answer = group.on_each([member_of(row.node)], kill)[0]
    if isinstance(answer, SshError):
        Leftover.objects.filter(pk=row.pk).update(problem=str(answer))
        return
    with transaction.atomic():
        if Leftover.objects.filter(pk=row.pk, ended_at=None).update(ended_at=timezone.now(), processes=0):
            changes.record(row.node, row.end_asked_by, f"ended what was left in {row.folder}; nothing of it runs")
