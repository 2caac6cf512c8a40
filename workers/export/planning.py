"""Ask an export's node what it will be: bytes, memory, time, disk, and every reason why it can't work."""

from __future__ import annotations

from contextlib import AsyncExitStack

from asgiref.sync import async_to_sync
from pydantic import ValidationError

from training.spec.exportplan import ExportPlan, Finding
from training.spec.faults import Reason
from training.spec.folder import EXPORT_READS, manifest_name
from training.spec.job import ExportJob, PlanJob
from training.spec.plan import training_argv
from webapp.fleet.ssh import CommandFailed, CommandKilled
from webapp.runs.models import Export

from .. import group, shards
from ..end.ending import End
from ..group import Member
from ..launch import prepare
from ..nodejob import heed
from ..shards import Place, Source

GONE = f"{shards.ROTATED.capitalize()}."
OTHER = "Choose another checkpoint."
SECONDS = 150.0  # importing torch from a cold network disk takes a minute; the probe a few seconds


def ask(export: Export, member: Member, source: Source, job: ExportJob, env: dict[str, str]) -> ExportPlan | None:
    """Return the plan, None where `export` is cancelled meanwhile; raise what SSH says.

    Nothing is written on any node, and no shard is moved.
    """
    found: list[ExportPlan] = []

    async def one() -> None:
        found.append(await _ask(member, source, job, env))

    return found[0] if async_to_sync(heed.unless_cancelled)(export, one()) else None


async def _ask(member: Member, source: Source, job: ExportJob, env: dict[str, str]) -> ExportPlan:
    async with AsyncExitStack() as stack:
        hosts = await group.connect_all(source.members, stack)
        places = [source.place(m, hosts[m.rank]) for m in source.members]
        here = (await group.connect_all([member], stack))[member.rank]
        await prepare.put_release(member, here)
        target = source.place(member, here)
        coming, problems = await _coming(source, places, target)
        asked = PlanJob(job=job, coming=coming, env=env).model_dump_json().encode()
        argv = training_argv(member.slot, member.release, "plan-export", "-")
        result = await here.run(argv, input=asked, seconds=SECONDS)
        if result.code not in (0, 1):
            raise CommandKilled.of(member.name, "planning the export", result.code, result.err or result.out)
        plan = _read(member, result.out)
    return plan.model_copy(update={"problems": (*problems, *plan.problems)})


async def _coming(source: Source, places: list[Place], target: Place) -> tuple[dict[str, int], list[Finding]]:
    """Return the files that have to be brought to `target`, with their bytes, and what no node has whole."""
    coming: dict[str, int] = {}
    problems: list[Finding] = []
    for rank in range(source.nodes):
        marker = manifest_name(rank)
        try:
            holder = await shards.holder_of(marker, [*places[rank : rank + 1], *places])
            text = await holder.host.read_text(holder.path(marker))
            files = [file for file in shards.manifest_files(text, marker) if file.name.startswith(EXPORT_READS)]
        except End as end:
            why = end.text.removesuffix(f"; {shards.ROTATED}")
            problems.append(Finding(field=marker, why=why, fix=GONE, reason=end.reason))
            continue
        if not await target.host.exists(target.path(marker)):
            coming[marker] = len(text.encode())
        for file in files:
            if await target.host.size(target.path(file.name)) == file.size:
                continue
            coming[file.name] = file.size
            if (found := await holder.host.size(holder.path(file.name))) != file.size:
                problems.append(_gone(file, holder, found))
    return coming, problems


def _gone(file: shards.File, holder: Place, found: int) -> Finding:
    why, fix = f"is gone from node {holder.name}", GONE
    if found:
        why, fix = f"has {found:,} bytes on node {holder.name}, {file.size:,} were written", OTHER
    return Finding(field=file.name, why=why, fix=fix, reason=Reason.DATA)


def _read(member: Member, out: str) -> ExportPlan:
    try:
        return ExportPlan.model_validate(group.answer(member, out))
    except ValidationError as error:
        raise CommandFailed(member.name, "reading the plan", str(error)) from error
