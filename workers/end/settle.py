"""Before a job is called ended: proof that none of its processes is left, and every line read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async

from webapp.fleet.ssh import Host, SshError
from webapp.runs import folding, proof
from webapp.runs.models import Stream

from .. import group
from ..follow.ingest import store
from ..follow.reader import reader_of
from ..group import Answer, Member

OVER = frozenset({"ended", "lost", "absent", "ready"})


@dataclass
class Settled:
    """By rank: `status` of those that answered, `errors` of the others; `gone`: no process is left and all was read.

    `names`: of the nodes.
    """

    names: dict[int, str] = field(default_factory=dict)
    status: dict[int, Answer] = field(default_factory=dict)
    errors: dict[int, SshError] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    @property
    def alive(self) -> set[int]:
        """Those that answered that something is left."""
        return self.status.keys() - self.gone

    @property
    def held(self) -> set[int]:
        """Those of `gone` on which the memory of a GPU is not back where it was before."""
        return {rank for rank in self.gone if proof.held(self.status[rank].get("gpus"))}

    @property
    def proven(self) -> set[int]:
        """Where nothing is left at all."""
        return self.gone - self.held

    def doubts(self) -> list[str]:
        """Return what is not known to be empty, a text each."""
        left = [f"node {self.names[rank]}: {self._left(rank)}" for rank in sorted(self.alive | self.held)]
        return [*map(str, self.errors.values()), *left]

    def _left(self, rank: int) -> str:
        if rank in self.alive and not self.status[rank].get("processes"):
            return "its supervisor is still at work"
        return proof.sentence(proof.made(self.status[rank], 0.0, None))


def settle(members: Sequence[Member], streams: Iterable[Stream]) -> Settled:
    """Ask every node; read to their ends the files of those where nothing is left."""
    by_node: dict[int, list[Stream]] = {}
    for stream in streams:
        by_node.setdefault(stream.node_id, []).append(stream)

    async def one(member: Member, host: Host) -> Answer:
        status = await group.training(member, host, "status", str(member.folder.path))
        if member.slot.gpus and status.get("gpus"):  # the others are not this job's, whoever has them
            status["gpus"] = [gpu for gpu in status["gpus"] if gpu["index"] in member.slot.gpus]
        if is_over(status):
            for stream in by_node.get(member.node_id, []):
                await drain(stream, host)
        return status

    settled = Settled({member.rank: member.name for member in members})
    for rank, found in group.on_each(members, one).items():
        if isinstance(found, SshError):
            settled.errors[rank] = found
            continue
        settled.status[rank] = found
        if is_over(found):
            settled.gone.add(rank)
    return settled


def is_over(status: Answer) -> bool:
    return status.get("state") in OVER and not status.get("processes")


async def drain(stream: Stream, host: Host) -> None:
    """Read what is left of a file that no longer grows, a torn last line too, and close its stream's account."""
    reader = reader_of(stream.source, stream.offset)
    keep = sync_to_async(store)
    if await host.size(stream.path) > stream.offset:
        async for block in host.read_range(stream.path, stream.offset):
            await keep(stream, reader.feed(block))
    await keep(stream, reader.rest())
    await sync_to_async(folding.fold)(stream)
