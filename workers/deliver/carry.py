"""An export carried to another node, through the worker: each step compares or copies one file.

Files come into `<folder>.delivery/new`, beside the place, and get its name in one rename when all are there with their
hashes. What another try left there and is whole is not sent again. `Delivery.carried` says how far it is, so that a
worker may die anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync

from training.spec.deliver import refusals
from training.spec.deliver.folder import NEW, SUMS, File, lacking, sums_of, unfit, with_sums
from training.spec.faults import Reason
from webapp.deliveries.actions import source_of
from webapp.deliveries.models import Delivery
from webapp.fleet.ssh import Endpoint, Host, connect

from ..end.ending import End
from ..nodejob import heed
from . import remote
from .telling import Telling

What = tuple[str, str, bool, tuple[File, ...], dict[str, Any]]
Step = Callable[["Carry"], Coroutine[Any, Any, None]]


@dataclass
class Carry:
    """One step of a delivery, with all that it needs to know. `state`: what Delivery.carried becomes."""

    source: str
    folder: str
    replace: bool
    files: tuple[File, ...]
    state: dict[str, Any]
    telling: Telling
    giver: Host
    taker: Host

    @property
    def work(self) -> str:
        return remote.work_of(self.folder)

    @property
    def fate(self) -> dict[str, str]:
        """By name: same, sent or skipped."""
        found: dict[str, str] = self.state.setdefault("fate", {})
        return found

    @property
    def next(self) -> File | None:
        return next((file for file in self.files if file.name not in self.fate), None)

    def bytes(self, *fates: str) -> int:
        return sum(file.size for file in self.files if self.fate.get(file.name) in fates)


def step(job: Delivery) -> float:
    """Do the next step of `job`; it is over when job.result is there."""
    if job.to_node is None or job.node is None:
        raise ValueError(f"{job} goes to no other node")
    ends = Endpoint.of(job.node), Endpoint.of(job.to_node)
    files = with_sums(File(file["name"], file["size"], file["sha256"]) for file in job.export.files)
    what = (source_of(job.export), str(job.target["folder"]), job.replace, files, dict(job.carried))
    async_to_sync(heed.unless_cancelled)(job, _connected(job, ends, what))
    return 0.0  # where it was broken off the next look cancels


async def _connected(job: Delivery, ends: tuple[Endpoint, Endpoint], what: What) -> None:
    async with AsyncExitStack() as stack:
        giver, taker = [await stack.enter_async_context(connect(end)) for end in ends]
        carry = Carry(*what, Telling(job, what[3]), giver, taker)
        await STAGES[carry.state.get("stage", "")](carry)
        await carry.telling.keep(carry.state)


async def _begin(carry: Carry) -> None:
    """Look at the place: whole folders are compared, others refused unless they may be replaced."""
    await remote.check_place(carry.taker, carry.folder)
    there = await remote.sizes(carry.taker, carry.folder)
    if there and _is_whole(there, carry):
        carry.state["stage"] = "compare"
        return
    if there and not carry.replace:
        raise _other(carry)
    await _begin_to_fill(carry)


async def _begin_to_fill(carry: Carry) -> None:
    """Ready the working folder: what another export's delivery, or a killed one, left in it goes."""
    await remote.make_work(carry.taker, carry.folder, carry.telling.job.pk)
    await remote.tidy(carry.taker, carry.folder, carry.files)
    await remote.check_room(carry.taker, carry.folder, sum(file.size for file in carry.files))
    carry.state.update(stage="fill", fate={})


async def _compare(carry: Carry) -> None:
    """Compare one file of a folder that has all the names; all the same means that nothing is to be done."""
    file = carry.next
    if file is None:
        await remote.clear(carry.taker, carry.folder)
        carry.state["result"] = _result(carry) | {"already": True, "bytes_skipped": carry.bytes("same")}
        return
    await carry.telling.progress("verify", carry.bytes("same"))
    if await remote.is_whole(carry.taker, f"{carry.folder}/{file.name}", file):
        carry.fate[file.name] = "same"
        return
    if not carry.replace:
        raise _other(carry)
    await _begin_to_fill(carry)


async def _fill(carry: Carry) -> None:
    """Bring one file, unless an earlier try has; when none is missing, the folder gets its name."""
    file = carry.next
    if file is None:
        carry.state["stage"] = "swap"
        return
    await remote.check_ours(carry.taker, carry.folder, carry.telling.job.pk)
    path, before = f"{carry.work}/{NEW}/{file.name}", carry.bytes("sent", "skipped")
    await carry.telling.progress("send", before)
    if await remote.is_whole(carry.taker, path, file):
        carry.fate[file.name] = "skipped"
        return
    if file.name == SUMS:
        await carry.taker.put_text(path, sums_of(carry.files))
    else:
        blocks = carry.giver.read_range(f"{carry.source}/{file.name}")
        try:
            await remote.receive(carry.taker, path, file, carry.telling.counted(blocks, before))
        except End:  # no later try can go on from what has come
            await remote.forget(carry.taker, carry.folder)
            raise
    if not await remote.is_whole(carry.taker, path, file):
        raise remote.refusal(carry.taker, refusals.read_back(file.name))
    carry.fate[file.name] = "sent"


async def _swap(carry: Carry) -> None:
    """Give the folder its name. Done again after a kill, it finds what is left to do."""
    taker, folder = carry.taker, carry.folder
    if await taker.exists(f"{carry.work}/{NEW}"):
        await remote.check_ours(taker, folder, carry.telling.job.pk)
        await remote.check_place(taker, folder)
        if not carry.replace and await remote.sizes(taker, folder):
            raise _other(carry)  # it came there meanwhile
        await remote.tidy(taker, folder, carry.files)
        _check_whole(await remote.sizes(taker, f"{carry.work}/{NEW}"), carry)
        await remote.take_place(taker, folder)
    _check_whole(await remote.sizes(taker, folder), carry)
    replaced = await remote.clear(taker, folder)
    carry.state["result"] = _result(carry) | {
        "bytes_sent": carry.bytes("sent"),
        "bytes_skipped": carry.bytes("skipped"),
        "replaced": replaced,
    }


def _is_whole(there: dict[str, int], carry: Carry) -> bool:
    return not unfit(there, carry.files) and not lacking(there, carry.files)


def _check_whole(there: dict[str, int], carry: Carry) -> None:
    """Raise End where what had arrived is not there any more: somebody else was at it."""
    if not _is_whole(there, carry):
        names = ", ".join([*lacking(there, carry.files), *unfit(there, carry.files)][:5])
        why = f"{carry.taker.name}: what had arrived for {carry.folder} was changed by somebody else ({names})"
        raise End(Reason.DESTINATION, f"{why}; send it again")


def _result(carry: Carry) -> dict[str, Any]:
    return {
        "where": carry.folder,
        "url": "",
        "files": [vars(file) for file in carry.files],
        "bytes_sent": 0,
        "already": False,
        "replaced": False,
        "note": "it was there already" if carry.state.get("stage") == "compare" else "",
    }


def _other(carry: Carry) -> End:
    return remote.refusal(carry.taker, refusals.other_content(carry.folder))


STAGES: dict[str, Step] = {"": _begin, "compare": _compare, "fill": _fill, "swap": _swap}
