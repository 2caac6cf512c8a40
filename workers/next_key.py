"""Is the key that shall take the place of an identity's let in? Asked of each of its nodes, with the old one kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from django.utils import timezone

from training.spec.folder import JobFolder
from webapp.fleet.models import NextKey, Node
from webapp.fleet.ssh import Endpoint, Host, SshError

from . import group
from .group import Member


def try_key(identity_id: int) -> None:
    """Try it and write down what every node said; of a key that was changed or let go meanwhile, nothing."""
    following = NextKey.objects.select_related("identity").filter(identity=identity_id).first()
    if following is None or following.asked_at is None:
        return
    nodes = list(following.identity.nodes.filter(removed_at=None))
    answers = group.on_each([_member(i, node, following) for i, node in enumerate(nodes)], _let_in)
    tried = {str(node.pk): _why(answers[i]) for i, node in enumerate(nodes)}
    same = NextKey.objects.filter(pk=following.pk, public_key=following.public_key)
    same.update(tried=tried, tried_at=timezone.now())


def _member(number: int, node: Node, following: NextKey) -> Member:
    """Named by the try: a connection, or a refusal, of an earlier one says nothing of what the node does now."""
    name = f"{node.name}, key tried {following.asked_at:%H:%M:%S.%f}"
    endpoint = replace(Endpoint.of(node), private_key=following.private_key, name=name)
    return Member(number, node.pk, node.slot(), endpoint, JobFolder(PurePosixPath(node.scratch)), "")


async def _let_in(member: Member, host: Host) -> str:
    await host.check(["true"])
    return ""


def _why(answer: str | SshError) -> str:
    return answer if isinstance(answer, str) else answer.why
