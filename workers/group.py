"""The nodes of one job, and what is asked of all of them at once over SSH."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from training.spec.folder import JobFolder, Scratch
from training.spec.plan import NodeSlot, training_argv
from webapp.fleet.ssh import CommandFailed, Endpoint, Host, SshError, Unreachable, connect
from webapp.runs.models import Attempt, NodeJob, Placement

Answer = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Member:
    """One job on one node; holds all that is needed, so that nothing remote asks the database."""

    rank: int
    node_id: int
    slot: NodeSlot
    endpoint: Endpoint
    folder: JobFolder
    release: str

    @property
    def name(self) -> str:
        return self.slot.name

    @property
    def scratch(self) -> Scratch:
        return Scratch(PurePosixPath(self.slot.scratch))


def of_attempt(attempt: Attempt) -> list[Member]:
    """Return the attempt's nodes, rank 0 first."""
    return [of_placement(attempt, placement) for placement in attempt.placements.select_related("node__identity")]


def of_placement(attempt: Attempt, placement: Placement) -> Member:
    slot = placement.node_slot()
    folder = Scratch(PurePosixPath(slot.scratch)).job(attempt.run_id, attempt.number, placement.rank)
    return Member(
        placement.rank, placement.node_id, slot, Endpoint.of(placement.node), folder, attempt.release
    )  # fmt: skip


def of_job(job: NodeJob, release: str) -> Member:
    """Return the one node of a job; it has been chosen."""
    if job.node is None or job.slot is None:
        raise ValueError(f"{job} has no node yet")
    return Member(0, job.node.pk, NodeSlot(**job.slot), Endpoint.of(job.node), job.folder, release)


def on_each(members: Sequence[Member], ask: Callable[[Member, Host], Awaitable[T]]) -> dict[int, T | SshError]:
    """Connect to every member at once and `ask` it; return rank -> answer, or the error that it gave."""

    async def one(member: Member) -> T | SshError:
        try:
            async with connect(member.endpoint) as host:
                return await ask(member, host)
        except SshError as error:
            return error

    async def every() -> list[T | SshError]:
        return list(await asyncio.gather(*(one(member) for member in members)))

    return dict(zip((m.rank for m in members), async_to_sync(every)(), strict=True))


async def connect_all(members: Sequence[Member], stack: AsyncExitStack) -> dict[int, Host]:
    """Return rank -> connected host, all kept open by `stack`; raise the first error, once all have tried."""
    connecting = (stack.enter_async_context(connect(member.endpoint)) for member in members)
    found = await asyncio.gather(*connecting, return_exceptions=True)  # one that goes on would enter a closed stack
    hosts: dict[int, Host] = {}
    for member, host in zip(members, found, strict=True):
        if isinstance(host, BaseException):
            raise host
        hosts[member.rank] = host
    return hosts


async def connect_each(members: Sequence[Member], stack: AsyncExitStack) -> dict[int, Host | Unreachable]:
    """Return rank -> connected host, or why it can't be reached; raise any other error, once all have tried."""
    connecting = (stack.enter_async_context(connect(member.endpoint)) for member in members)
    found = await asyncio.gather(*connecting, return_exceptions=True)
    hosts: dict[int, Host | Unreachable] = {}
    for member, host in zip(members, found, strict=True):
        if isinstance(host, BaseException) and not isinstance(host, Unreachable):
            raise host
        hosts[member.rank] = host
    return hosts


async def training(member: Member, host: Host, *words: str, seconds: float = 120.0) -> Answer:
    """Run `python -m training WORDS` with the job's release; return what it printed."""
    out = await host.check(training_argv(member.slot, member.release, *words), seconds=seconds)
    return answer(member, out)


def answer(member: Member, out: str) -> Answer:
    """Return the JSON object on the last line of `out`; a login may have printed above it."""
    try:
        found = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CommandFailed(member.name, "reading the answer", out or "it is empty")
    return found


def errors(answers: dict[int, T | SshError]) -> list[SshError]:
    return [found for found in answers.values() if isinstance(found, SshError)]
