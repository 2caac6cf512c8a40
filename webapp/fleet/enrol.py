"""Bring identities and nodes into the service: for the pages and for the commands alike."""

from __future__ import annotations

import asyncio

from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused

from . import changes, labels, ssh
from .models import Claim, Cluster, Identity, Node
from .models.node import NO_PYTHON

SECONDS = 15  # that a person waits for a host to show its key


def make_identity(name: str) -> Identity:
    """Return the identity of that name; its key pair is made on first use, and once where two ask for it at once."""
    found = Identity.objects.filter(name=name).first()
    if found is not None:
        return found
    pair = ssh.make_identity(f"shardboard:{name}")
    made = Identity(name=name, public_key=pair.public)
    made.private_key = pair.private
    made.full_clean(validate_unique=False)
    keys = {"public_key": made.public_key, "sealed_private_key": made.sealed_private_key}
    return Identity.objects.get_or_create(name=name, defaults=keys)[0]


def shown_key(address: str, port: int, like: str = "", jump: Node | None = None) -> str:
    """Return the public host key that a host shows now, for a person to compare; raise Refused.

    `jump`: the node through which it is reached.
    """
    try:
        return async_to_sync(_ask_key)(address, port, like, ssh.Endpoint.of(jump) if jump else None)
    except ssh.SshError as error:
        raise Refused([error.problem]) from None
    except TimeoutError:
        reason = f"{address} port {port} did not answer within {SECONDS} s"
        raise Refused([Problem("address", reason, "Check that the host is up, and its address and port.")]) from None


async def _ask_key(address: str, port: int, like: str, via: ssh.Endpoint | None) -> str:
    async with asyncio.timeout(SECONDS):
        return await ssh.host_key(address, port, like=like, via=via)


def shown_now(node: Node) -> str:
    """Return the key that `node` shows, of the pinned one's type where it has one; raise Refused."""
    try:
        return shown_key(node.address, node.port, node.host_key, node.jump)
    except Refused:
        if not node.host_key:
            raise
        return shown_key(node.address, node.port, jump=node.jump)


def confirmed_key(node: Node, key: str = "", fingerprint: str = "") -> str:
    """Return the host key to pin: `key` itself, or the one that the host shows where its fingerprint is the one given.

    Raises Refused with what the host shows where nobody has confirmed that.
    """
    if key:
        return checked_key(key)
    shown = shown_key(node.address, node.port, jump=node.jump)
    if ssh.fingerprint(shown) == fingerprint:
        return shown
    given = f"not {fingerprint}" if fingerprint else "and nobody has confirmed it"
    fix = f"If that is the node, ask again with the fingerprint {ssh.fingerprint(shown)}"
    raise Refused([Problem("fingerprint", f"the host shows {ssh.fingerprint(shown)}, {given}", fix)])


def checked_key(text: str) -> str:
    """Return `text` as one public key in OpenSSH format; raise Refused."""
    line = " ".join(text.split()[:2])
    try:
        if ssh.fingerprint(line):
            return line
    except (ValueError, OverflowError):  # of a damaged RSA key asyncssh says the latter: a number in it is negative
        pass
    fix = "Give the node's /etc/ssh/ssh_host_ed25519_key.pub."
    raise Refused([Problem("host_key", "it is no public key in OpenSSH format", fix)])


@transaction.atomic
def put_node(node: Node, cluster: str, actor: str = "service") -> Node:
    """Check and store `node` in the cluster of that name, made where it is missing; raise Refused.

    What is new or different is written down as `actor`'s doing.
    """
    before = Node.objects.filter(pk=node.pk).first() if node.pk else None
    _check_removed(before, node)
    try:
        node.cluster = Cluster.objects.filter(name=cluster).first() or _new_cluster(cluster)
        node.labels = labels.checked(node.labels)
        node.full_clean()
    except ValidationError as error:
        raise Refused(problems_of(error)) from None
    _check_move(before, node)
    if not node.python and node.in_service:
        node.in_service, node.drained_at, node.drained_by, node.drained_why = False, timezone.now(), actor, NO_PYTHON
    node.save()
    _tell(before, node, actor)
    return node


def _check_removed(before: Node | None, node: Node) -> None:
    if before and before.removed_at:
        raise Refused([Problem("node", f"{before} was removed", "Bring it back first.")])
    if Node.objects.filter(name=node.name).exclude(pk=node.pk).exclude(removed_at=None).exists():
        fix = "Bring that one back (it is listed among the removed nodes), or choose another name."
        raise Refused([Problem("name", f"{node.name} was removed, and its name is kept", fix)])


def _check_move(before: Node | None, node: Node) -> None:
    if before and before.cluster_id != node.cluster_id and Claim.objects.filter(node=node).exists():
        why = f"a run of {before.cluster} holds the node"
        raise Refused([Problem("cluster", why, "Drain it and wait until it is free.")])


def _tell(before: Node | None, node: Node, actor: str) -> None:
    if before is None:
        key = ssh.fingerprint(node.host_key)
        changes.record(node, actor, f"added, {key} pinned" if key else "added")
    else:
        told = [changes.differences(before, node)]
        if before.host_key != node.host_key:
            told.append(f"{ssh.fingerprint(node.host_key) or 'no key'} pinned")
        if before.in_service and not node.in_service:
            told.append(f"taken out of service: {node.drained_why}")
        if text := ", ".join(filter(None, told)):
            changes.record(node, actor, text)


def _new_cluster(name: str) -> Cluster:
    cluster = Cluster(name=name)
    try:
        cluster.full_clean()
    except ValidationError as error:
        raise ValidationError({"cluster": error.messages}) from None
    cluster.save()
    return cluster


def problems_of(error: ValidationError) -> list[Problem]:
    """Return Django's errors of a row as problems by field."""
    return [
        Problem(field, message.rstrip("."), "Change it and try again.")
        for field, messages in error.message_dict.items()
        for message in messages
    ]


@transaction.atomic
def repin(node: Node, key: str, actor: str = "service") -> None:
    """Pin `key`, which a person has confirmed; whatever the old key had as a problem is to be checked anew."""
    old = ssh.fingerprint(node.host_key) or "none"
    node.host_key, node.problem, node.checked_at = checked_key(key), "", None
    node.save(update_fields=["host_key", "problem", "checked_at"])
    changes.record(node, actor, f"host key {ssh.fingerprint(node.host_key)} pinned, it was {old}")
