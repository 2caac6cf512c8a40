"""Bring identities and nodes into the service: for the pages and for the commands alike."""

from __future__ import annotations

import asyncio

from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import transaction

from training.spec.lint import Problem, Refused

from . import ssh
from .models import Cluster, Identity, Node

SECONDS = 15  # that a person waits for a host to show its key


def make_identity(name: str) -> Identity:
    """Return the identity of that name; its key pair is made on first use."""
    found = Identity.objects.filter(name=name).first()
    if found is not None:
        return found
    pair = ssh.make_identity(f"shardboard:{name}")
    identity = Identity(name=name, public_key=pair.public)
    identity.private_key = pair.private
    identity.full_clean()
    identity.save()
    return identity


def shown_key(address: str, port: int, like: str = "") -> str:
    """Return the public host key that a host shows now, for a person to compare; raise Refused."""
    try:
        return async_to_sync(_ask_key)(address, port, like)
    except ssh.SshError as error:
        raise Refused([error.problem]) from None
    except TimeoutError:
        reason = f"{address} port {port} did not answer within {SECONDS} s"
        raise Refused([Problem("address", reason, "Check that the host is up, and its address and port.")]) from None


async def _ask_key(address: str, port: int, like: str) -> str:
    async with asyncio.timeout(SECONDS):
        return await ssh.host_key(address, port, like=like)


def shown_now(node: Node) -> str:
    """Return the key that `node` shows, of the pinned one's type where it has one; raise Refused."""
    try:
        return shown_key(node.address, node.port, like=node.host_key)
    except Refused:
        if not node.host_key:
            raise
        return shown_key(node.address, node.port)


def checked_key(text: str) -> str:
    """Return `text` as one public key in OpenSSH format; raise Refused."""
    line = " ".join(text.split()[:2])
    try:
        if ssh.fingerprint(line):
            return line
    except ValueError:
        pass
    fix = "Give the node's /etc/ssh/ssh_host_ed25519_key.pub."
    raise Refused([Problem("host_key", "it is no public key in OpenSSH format", fix)])


@transaction.atomic
def put_node(node: Node, cluster: str) -> Node:
    """Check and store `node` in the cluster of that name, made where it is missing; raise Refused."""
    try:
        node.cluster = Cluster.objects.filter(name=cluster).first() or _new_cluster(cluster)
        node.full_clean()
    except ValidationError as error:
        raise Refused(problems_of(error)) from None
    node.save()
    return node


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


def repin(node: Node, key: str) -> None:
    """Pin `key`, which a person has confirmed; whatever the old key had as a problem is to be checked anew."""
    node.host_key, node.problem, node.checked_at = checked_key(key), "", None
    node.save(update_fields=["host_key", "problem", "checked_at"])
