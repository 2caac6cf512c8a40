"""preparing: the release, a preflight, the data set, the checkpoint to go on from, the job's files. In this order,
so that a node that can't train is refused before anything large is moved.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction
from django.utils import timezone

from training.spec.envfile import dump
from training.spec.faults import Reason
from training.spec.forecast import Course
from training.spec.job import Job
from training.spec.lint import Problem, Refused
from training.spec.plan import Launch, NodePlan, plan_attempt
from training.spec.recipe import Recipe
from webapp.fleet.ssh import CommandFailed, DiskFull, Host
from webapp.runs import actions, journal, lifecycle, rank_env
from webapp.runs.models import Attempt, Run
from webapp.runs.states import RunState

from .. import group, shards
from ..end import finish
from ..end.ending import End
from ..group import Member
from ..nodejob import heed
from ..preflight import launch as preflight
from ..preflight.launch import Passed
from ..shards import Account, Tell
from . import ports, release

PORT_SECONDS = 30.0  # after so long a copy, the port that was free may be taken


@dataclass(frozen=True)
class Needs:
    """What a run needs on every node. `files`: of the data set, here, with sizes in bytes; `model`: as nodes see it.
    `account`: who is told of the checkpoint being brought there.
    """

    recipe: Recipe
    course: Course
    model: str
    digest: str
    files: Mapping[Path, int]
    source: shards.Source | None
    account: Account


def prepare(run: Run, attempt: Attempt) -> float:
    """Put everything where it belongs; then the job's files are on every node and nothing runs yet."""
    env = environment(run.model.location)
    code = release.current()
    if attempt.release != code.digest:
        attempt.release = code.digest
        attempt.save(update_fields=["release"])
    nodes = list(attempt.placements.values_list("node", flat=True))
    for old in finish.unproven(nodes):
        finish.clear(old, nodes)
    members = group.of_attempt(attempt)
    source = shards.source_of(attempt.resume_from) if attempt.resume_from else None
    course = Course(run.total_steps, since=source.step if source else 0)
    files = files_of(run.dataset.folder)
    needs = Needs(run.parsed_recipe(), course, run.model.location, run.dataset.digest, files, source, account(attempt))
    try:
        passed = async_to_sync(heed.unless)(partial(_is_over, run), _on_nodes(attempt, members, needs))
    except heed.BrokenOff:
        return 0.0  # whoever comes next sees what was asked
    if not ports.keep(attempt, passed.port):
        return 0.0  # of two at once, the other was first: what is there already is not put again
    plans = _plans(run, attempt, passed.members, env)
    async_to_sync(put_plans)(passed.members, plans)
    with transaction.atomic():
        moved = lifecycle.move(run, RunState.STARTING, actor="worker", cause="every node is ready")
        if moved:
            _keep(attempt, plans)
            for text in passed.warnings:
                journal.warn(attempt, text)
    return 0.0


def _is_over(run: Run) -> bool:
    """A stop moves the run on at once; data and shards may take hours to come."""
    return not Run.objects.filter(pk=run.pk, state=RunState.PREPARING).exists()


def account(attempt: Attempt, tell: Tell | None = None) -> Account:
    """Return who is told when a checkpoint is brought together for `attempt`: its run's journal."""

    @transaction.atomic
    def say(text: str) -> None:
        journal.note(attempt, journal.SHARDS, {"text": text}, source="service:shards")

    return Account(sync_to_async(say), tell)


def _keep(attempt: Attempt, plans: list[NodePlan]) -> None:
    """Write down what this launch is made of: the node's next check may find other versions."""
    by_rank = {plan.rank: plan for plan in plans}
    for placement in attempt.placements.select_related("node"):
        plan = by_rank[placement.rank]
        command = Job.model_validate_json(plan.files[plan.folder.job.name]).argv
        placement.slot = vars(plan.node)
        placement.facts = {"check": placement.node.facts, "command": list(command), "variables": sorted(plan.env)}
        placement.prepared_at = timezone.now()
        placement.save(update_fields=["slot", "facts", "prepared_at"])


async def _on_nodes(attempt: Attempt, members: list[Member], needs: Needs) -> Passed:
    """Return the nodes as they are to be started, and the rendezvous port on the first."""
    async with AsyncExitStack() as stack:
        hosts = await group.connect_all(members, stack)
        await asyncio.gather(*(put_release(m, hosts[m.rank]) for m in members))
        asked = preflight.Asked(needs.recipe, needs.course, needs.model)
        passed = await preflight.before(attempt, members, hosts, asked)
        found = time.monotonic()
        await asyncio.gather(*(put_dataset(m, hosts[m.rank], needs.digest, needs.files) for m in members))
        if source := needs.source:
            targets = [source.place(m, hosts[m.rank]) for m in members]
            await shards.bring_together(source, targets, needs.account)
        if time.monotonic() < found + PORT_SECONDS:
            return passed
        first = members[0]
        port = (await group.training(first, hosts[first.rank], "free-port", first.slot.address))["port"]
        return replace(passed, port=int(port))


async def put_release(member: Member, host: Host) -> None:
    """Put the code there, unless it is; a scratch that can't be written is the node's problem."""
    try:
        await release.put(host, member.slot.scratch)
    except DiskFull:
        raise
    except CommandFailed as error:
        problem = Problem("scratch", error.why, "Name a folder that this user may write, with space left.")
        raise End(Reason.PREFLIGHT, f"node {member.name}: {problem}") from error


def files_of(folder: Path) -> dict[Path, int]:
    """Return the data set's files with their sizes in bytes; raise End where it has vanished here."""
    files = {path: path.stat().st_size for path in sorted(folder.glob("*.jsonl"))}
    if not files:
        raise End(Reason.DATA, f"the data set's files are not in {folder}; upload it again")
    return files


async def put_dataset(member: Member, host: Host, digest: str, files: Mapping[Path, int]) -> None:
    """Put the files of a data set, each whole or not at all; what is there already stays."""
    for path, size in files.items():
        there = str(member.scratch.dataset(digest) / path.name)
        if await host.size(there) != size:
            await host.put_file(there, path)


def _plans(run: Run, attempt: Attempt, members: list[Member], env: dict[str, str]) -> list[NodePlan]:
    resume = attempt.resume_from
    launch = Launch(
        run.pk, attempt.number, attempt.port, attempt.release,
        resume=(resume.attempt.number, resume.step) if resume else None, env=env,
    )  # fmt: skip
    try:
        return plan_attempt(run.parsed_recipe(), actions.target_of(run), [m.slot for m in members], launch)
    except Refused as refused:
        raise End(Reason.CONFIGURATION, str(refused)) from refused


def environment(model: str) -> dict[str, str]:
    """Return settings for the ranks; raise End where the operator's can't be read."""
    try:
        return rank_env.environment(model)
    except Refused as refused:
        raise End(Reason.CONFIGURATION, str(refused)) from refused


async def put_plans(members: list[Member], plans: list[NodePlan]) -> None:
    async with AsyncExitStack() as stack:
        hosts = await group.connect_all(members, stack)
        await asyncio.gather(*(put_plan(hosts[m.rank], plan) for m, plan in zip(members, plans, strict=True)))


async def put_plan(host: Host, plan: NodePlan) -> None:
    """Write the job's files; `start` refuses a folder without job.json, so that comes last."""
    await host.put_text(str(plan.folder.env), dump(plan.env), 0o600)
    others = {str(plan.folder.path / name): text for name, text in plan.files.items()}
    last = others.pop(str(plan.folder.job))
    await asyncio.gather(*(host.put_text(path, text) for path, text in others.items()))
    await host.put_text(str(plan.folder.job), last)
