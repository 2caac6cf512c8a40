"""What people do to an SSH identity: paste a key in, replace it once the new one is let in everywhere, delete it."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.dispatch import try_key

from . import changes, ssh
from .enrol import problems_of
from .models import Identity, NextKey


def agent_keys() -> list[str]:
    """Return the public keys that the service's SSH agent holds; raise Refused where there is none."""
    try:
        return async_to_sync(ssh.agent_keys)()
    except ssh.SshError as error:
        raise Refused([error.problem]) from None


def from_agent(name: str, public_key: str) -> Identity:
    """Keep which key of the agent the identity is; raise Refused unless the agent holds it now."""
    if public_key not in agent_keys():  # before any row is locked: it may let us wait
        raise Refused([Problem("public_key", "the SSH agent does not hold it", "Choose one of those it holds.")])
    return _keep(Identity(name=name, kind=Identity.Kind.AGENT, public_key=public_key), "public_key")


def paste(name: str, private_key: str) -> Identity:
    """Keep a private key that a person brings, sealed; raise Refused where it can't be used, or is there already."""
    pair = ssh.import_identity(private_key.strip() + "\n")
    identity = Identity(name=name, kind=Identity.Kind.PASTED, public_key=pair.public)
    identity.private_key = pair.private
    return _keep(identity, "private_key")


@transaction.atomic
def _keep(identity: Identity, field: str) -> Identity:
    shown = ssh.fingerprint(identity.public_key)
    for other in Identity.objects.all():
        if ssh.fingerprint(other.public_key) == shown:
            raise Refused([Problem(field, f"{other} has this very key", f"Use {other}.")])
    try:
        identity.full_clean()
    except ValidationError as error:
        raise Refused(problems_of(error)) from None
    identity.save()
    return identity


@transaction.atomic
def delete(identity: Identity) -> None:
    """Delete it with its key; raise Refused while a node is reached with it."""
    nodes = list(identity.nodes.order_by("name"))
    if nodes:
        listed = ", ".join(f"{node} (removed)" if node.removed_at else str(node) for node in nodes)
        fix = "Give them another identity first; a removed one has to be brought back for that."
        raise Refused([Problem("identity", f"it is used by {listed}", fix)])
    identity.delete()


@transaction.atomic
def begin_replacement(identity: Identity, actor: str) -> NextKey:
    """Make the next key, unless there is one; nothing uses it yet. Raise Refused where the key is not kept here."""
    if identity.kind == Identity.Kind.AGENT:
        fix = "Add the new key to the agent, and an identity for it; then give that to the nodes."
        raise Refused([Problem("identity", "an SSH agent holds its key, not this service", fix)])
    pair = ssh.make_identity(f"shardboard:{identity.name}")
    made = NextKey(identity=identity, public_key=pair.public, made_by=actor)
    made.private_key = pair.private
    found, _ = NextKey.objects.get_or_create(
        identity=identity,
        defaults={
            "public_key": made.public_key,
            "sealed_private_key": made.sealed_private_key,
            "made_by": actor,
        },
    )
    return found


@transaction.atomic
def ask_try(following: NextKey) -> None:
    """Have the workers try it on each node of the identity."""
    following.asked_at = timezone.now()
    following.save(update_fields=["asked_at"])
    try_key(following.identity_id)


@transaction.atomic
def finish_replacement(identity: Identity, actor: str) -> None:
    """Make the next key the identity's own and let the old one go; raise Refused unless every node let it in."""
    following = NextKey.objects.select_for_update().filter(identity=identity).first()
    if following is None:
        raise Refused([Problem("identity", "there is no next key", "Begin the replacement first.")])
    if waiting := [(node, why) for node, why in following.answers() if why != ""]:
        raise Refused([_keeps_out(str(node), why) for node, why in waiting])
    identity.public_key, identity.sealed_private_key = following.public_key, following.sealed_private_key
    identity.kind = Identity.Kind.MADE
    identity.save(update_fields=["public_key", "sealed_private_key", "kind"])
    for node, _ in following.answers():
        changes.record(node, actor, f"reached with the new key of {identity}, {ssh.fingerprint(identity.public_key)}")
    following.delete()


def _keeps_out(node: str, why: str | None) -> Problem:
    if why is None:
        return Problem(node, "the new key was not tried there", "Try it on the nodes.")
    return Problem(node, f"the new key was not let in: {why}", "Put it there, or remove the node; then try again.")
