"""Is one node ready? For its card on the Nodes page."""

from __future__ import annotations

from pathlib import PurePosixPath

from django.utils import timezone

from training.spec.folder import JobFolder
from webapp.fleet.models import Node
from webapp.fleet.ssh import Endpoint, Host, SshError

from .. import group
from ..group import Answer, Member
from ..launch import release
from .asked import UNMADE, ask, keep, problems


def member_of(node: Node, rank: int = 0) -> Member:
    """Return the node outside of any job."""
    nowhere = JobFolder(PurePosixPath(node.scratch))
    return Member(rank, node.pk, node.slot(), Endpoint.of(node), nowhere, release.current().digest)


def check_node(node_id: int) -> None:
    """Check one node; a node that has gone is none."""
    node = Node.objects.select_related("identity").filter(pk=node_id).first()
    if node is None:
        return
    member, asked_at = member_of(node), timezone.now()
    if not node.python:
        keep(member, asked_at, {}, [UNMADE])
        return
    facts = group.on_each([member], put_and_ask)[0]
    if isinstance(facts, SshError):
        keep(member, asked_at, {}, [facts.problem])
    else:
        keep(member, asked_at, facts, problems(member, facts))


async def put_and_ask(member: Member, host: Host) -> Answer:
    await release.put(host, member.slot.scratch)
    return await ask(member, host)
