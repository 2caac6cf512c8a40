"""What is asked of the node: one connection each, with the code that this service was started with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeVar

from training.spec import envfile
from training.spec.folder import JobFolder
from training.spec.plan import training_argv
from training.spec.provision import Wanted, files
from training.spec.venvfolder import VenvFolder
from webapp.fleet.models import Node
from webapp.fleet.ssh import Endpoint, Host, SshError

from .. import group
from ..group import Answer, Member
from ..launch import release

T = TypeVar("T")
START_SECONDS = 60.0


def ask(node: Node, python: str, what: Callable[[Member, Host], Awaitable[T]]) -> T:
    """Return the answer of the node, whose Python for that is `python`; raise what SSH says, and what `what` raises."""
    slot = replace(node.slot(), python=python)
    member = Member(
        0, node.pk, slot, Endpoint.of(node), JobFolder(PurePosixPath(node.scratch)), release.current().digest
    )
    answer = group.on_each([member], what)[0]
    if isinstance(answer, SshError):
        raise answer
    return answer


async def start(member: Member, host: Host, wanted: Wanted, place: VenvFolder) -> Answer:
    """Put there what the making needs, and start it; return its status. What is at work has its files already."""
    status = await provision(member, host, "status", place)
    if status["state"] != "running":
        await host.put_text(str(place.env), envfile.dump(wanted.env), 0o600)
        for path, content in files(wanted, place).items():
            await host.put_text(path, content)
    return await provision(member, host, "start", place)


async def stop(member: Member, host: Host, place: VenvFolder) -> Answer:
    answer = await provision(member, host, "stop", place)
    await host.remove(str(place.env))
    return answer


async def provision(member: Member, host: Host, act: str, place: VenvFolder) -> Answer:
    """Return the status after `act`, asked with our own release: the service may have been updated meanwhile."""
    await release.put(host, member.slot.scratch)
    argv = training_argv(member.slot, member.release, "provision", act, str(place.path))
    return group.answer(member, await host.check(argv, seconds=START_SECONDS))


async def preflight(member: Member, host: Host) -> Answer:
    await release.put(host, member.slot.scratch)
    return await group.training(member, host, "preflight", "--scratch", member.slot.scratch)
