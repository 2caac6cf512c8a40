"""Bring a checkpoint together: nodes with private disks each hold the shards that they wrote.

A place that lacks a file gets it from the place that has it: directly where the two nodes reach each other, else
carried through here; checked by its hash and only then renamed. Manifests come last: they are the completeness markers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath

from training.spec.faults import Reason
from training.spec.folder import part_name
from webapp.fleet.ssh import Host, NotThere, Unreachable
from webapp.show import size

from .. import group
from ..end.ending import End
from .carry import carry
from .count import Count, Tell
from .direct import NotDirectly, fetch
from .parts import ROTATED, File, Nowhere, Part, Place, Source, part


@dataclass(frozen=True)
class Account:
    """Who is told: `say` in sentences, for the run's journal; `tell` of bytes brought and of all to be brought."""

    say: Callable[[str], Awaitable[None]]
    tell: Tell | None = None


@dataclass(frozen=True)
class Way:
    """What goes from one node to another."""

    holder: Place
    target: Place
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


async def bring_together(
    source: Source, targets: Sequence[Place], account: Account, *, only: tuple[str, ...] = ("",)
) -> None:
    """Give every target the checkpoint's files whose names begin with one of `only`, and all manifests.

    How many bytes go from where to where is said before the first does. Raises End where a part is nowhere. A node
    that wrote a part and can't be reached is no hindrance where others, the targets too, have it; else it is raised.
    """
    async with AsyncExitStack() as stack:
        hosts = await group.connect_each(source.members, stack)
        away = [host for host in hosts.values() if isinstance(host, Unreachable)]
        places = {m.rank: source.place(m, host) for m in source.members if isinstance(host := hosts[m.rank], Host)}
        known = [*places.values(), *(targets if away else ())]
        try:
            parts = [await part(rank, places.get(rank), known, targets, only) for rank in range(source.nodes)]
            ways = ways_of(parts)
            if ways:
                await account.say(foretold(source.step, ways))
            count = Count(sum(way.bytes for way in ways), account.tell)
            await _all(_go(way, account, count) for way in ways)
            for one in parts:
                await _mark(one, targets)
        except Nowhere as error:
            if away:
                raise away[0] from error
            raise
        except NotThere as error:
            raise End(Reason.DATA, f"{error.node}: {error.why}; {ROTATED}") from error


async def _all(ways: Iterable[Coroutine[None, None, None]]) -> None:
    """Await all at once; the first that fails ends the others, and is raised itself."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for way in ways:
                tasks.create_task(way)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def ways_of(parts: Sequence[Part]) -> list[Way]:
    """Return what has to go from which node to which, in the order of parts."""
    found: dict[tuple[int, int], tuple[Place, Place, list[File]]] = {}
    for one in parts:
        for target, file in one.missing:
            key = id(one.holder), id(target)
            found.setdefault(key, (one.holder, target, []))[2].append(file)
    return [Way(holder, target, tuple(files)) for holder, target, files in found.values()]


def foretold(step: int, ways: Sequence[Way]) -> str:
    """Return one sentence on how many bytes go where."""
    texts = [f"{size(way.bytes)} from {way.holder.name} to {way.target.name}" for way in ways]
    return f"shards of step {step} are brought together: {', '.join(texts)}"


async def _go(way: Way, account: Account, count: Count) -> None:
    try:
        await fetch(way.files, way.holder, way.target, count)
    except NotDirectly as why:
        route = f"from {way.holder.name} to {way.target.name}"
        await account.say(f"{route} not directly, so through this service: {why}")
        for file in way.files:
            await _through_here(file, way, count)


async def _through_here(file: File, way: Way, count: Count) -> None:
    path = PurePosixPath(way.target.path(file.name))
    if await way.target.host.size(str(path)) == file.size:
        await count.more(file.size)
        return
    await way.target.host.remove(str(path.with_name(part_name(path.name))))  # of the try between the nodes
    await carry(file, way.holder, way.target, count)


async def _mark(one: Part, targets: Sequence[Place]) -> None:
    for target in targets:
        if not await target.host.exists(target.path(one.marker)):
            await target.host.put_text(target.path(one.marker), one.text)
