"""What people do to a node that is there: take it out of service and back, remove it and bring it back."""

from __future__ import annotations

from django.db import transaction
from django.db.models import ProtectedError
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp.runs.queue import wake

from . import changes, uses
from .models import Node
from .models.node import NO_PYTHON

LONGEST = 200


@transaction.atomic
def drain(node: Node, actor: str, why: str = "") -> None:
    """Have the node finish what it does and take nothing new. Said again, the newer reason counts."""
    why = " ".join(why.split())
    if len(why) > LONGEST:
        raise Refused([Problem("why", f"it has {len(why)} characters", f"Say it in {LONGEST}.")])
    if any(ord(c) < 32 for c in why):
        raise Refused([Problem("why", "it holds a control character", "Leave it out.")])
    _hold(node)
    node.in_service, node.drained_at, node.drained_by, node.drained_why = False, timezone.now(), actor, why
    node.save(update_fields=["in_service", "drained_at", "drained_by", "drained_why"])
    changes.record(node, actor, f"taken out of service: {why}" if why else "taken out of service")


@transaction.atomic
def restore(node: Node, actor: str) -> None:
    """Return the node to service; raise Refused where it can't take anything."""
    _hold(node)
    if node.removed_at:
        raise Refused([Problem("node", "it is removed", "Bring it back first.")])
    if not node.host_key:
        raise Refused([Problem("host_key", "nobody has confirmed it", "Compare and pin it first.")])
    if not node.python:
        raise Refused([Problem("python", "it has no interpreter", "Have one made, or name one; then return it.")])
    if node.in_service:
        return
    _serve(node)
    changes.record(node, actor, "returned to service")


def _hold(node: Node, *, to_delete: bool = False) -> None:
    """Read the node anew, and keep others from changing it until this is over; raise Refused where it has gone."""
    try:
        node.refresh_from_db(from_queryset=Node.objects.select_for_update(no_key=not to_delete))
    except Node.DoesNotExist:
        raise Refused([Problem("node", "it has been removed", "Add it anew.")]) from None


def _serve(node: Node) -> None:
    """Return it, and have those look that wait for it."""
    node.in_service, node.drained_at, node.drained_by, node.drained_why = True, None, "", ""
    node.save(update_fields=["in_service", "drained_at", "drained_by", "drained_why"])
    wake.call(node.cluster_id)


@transaction.atomic
def take_python(node: Node, python: str, actor: str, told: str) -> None:
    """Have the node use an interpreter that was made; one that only waited for that is returned to service."""
    _hold(node)
    waited = not node.python and not node.in_service and node.drained_why == NO_PYTHON and not node.removed_at
    node.python = python
    node.save(update_fields=["python"])
    if waited:
        _serve(node)
    changes.record(node, actor, f"{told}, returned to service" if waited else told)


@transaction.atomic
def remove(node: Node, actor: str, *, even_so: bool = False) -> bool:
    """Take the node away; return True where nothing told of it and its row is gone as well.

    Raises Refused with all that is on it, or with what would be lost unless that is meant (`even_so`). Files on the
    host stay as they are.
    """
    _hold(node, to_delete=True)
    problems = uses.in_use(node)
    if not problems and not even_so and (lost := uses.losses(node)):
        fix = "Deliver or delete them first, or say that they may become unreachable (even_so)."
        problems = [Problem("node", f"{' and '.join(lost)} lie there", fix)]
    if problems:
        raise Refused(problems)
    try:
        with transaction.atomic():
            node.delete()
        return True
    except ProtectedError:
        _mark(node, actor)
        return False


def _mark(node: Node, actor: str) -> None:
    node.removed_at, node.removed_by, node.in_service = timezone.now(), actor, False
    node.save(update_fields=["removed_at", "removed_by", "in_service"])
    changes.record(node, actor, "removed")


@transaction.atomic
def bring_back(node: Node, actor: str) -> None:
    """Undo a removal: the node is there again, out of service until somebody returns it."""
    _hold(node)
    if node.removed_at is None:
        return
    node.removed_at, node.removed_by = None, ""
    node.drained_at, node.drained_by, node.drained_why = timezone.now(), actor, "brought back"
    node.save(update_fields=["removed_at", "removed_by", "drained_at", "drained_by", "drained_why"])
    changes.record(node, actor, "brought back, out of service")
