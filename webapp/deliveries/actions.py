"""Send a ready export elsewhere: everything is checked first, then a row is made and a look is sent on commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from training.spec.deliver import (
    WORKING,
    DeliverJob,
    HubTarget,
    PathTarget,
    S3Target,
    missing_secrets,
    parse_job,
    parse_target,
)
from training.spec.lint import Problem, Refused
from webapp.dispatch import advance_job
from webapp.fleet.models import Node
from webapp.fleet.vault import WrongKey
from webapp.runs import lifecycle
from webapp.runs.models import Export

from .models import Delivery, Destination
from .models.delivery import spot_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Where:
    """A target without secrets, the other node where it is one, and the place in words."""

    target: dict[str, Any]
    node: Node | None
    place: str
    spot: str


@transaction.atomic
def deliver(
    export: Export,
    user: User,
    destination: Destination | None = None,
    *,
    folder: str = "",
    name: str = "",
    replace: bool = False,
) -> Delivery:
    """Queue a delivery of `export` to `destination`, where it is called `name`, or to a `folder` of its node.

    Only staff may name a folder: the node's user can write in many places. Sending the same again changes nothing.
    """
    lifecycle.lock(export.run.pk)
    export = Export.objects.select_for_update().get(pk=export.pk)
    if export.state != export.STATES.done or export.node is None:
        raise Refused([Problem("export", f"it is {export.state}, not ready", "Wait until it is ready.")])
    where = _where(export, user, destination, folder, name)
    _check(export, where, replace)
    made = _made(
        export=export, destination=destination, to_node=where.node, target=where.target, place=where.place,
        spot=where.spot, replace=replace, requested_by=user,
    )  # fmt: skip
    lifecycle.tell_of_job(
        made, "", actor=user.get_username(), text=f"export {export.pk} to be sent to {where.place}", export=export.pk
    )
    advance_job(made.KIND, made.pk)
    return made


def usual_name(export: Export) -> str:
    """Return what an export is called at a destination where nobody chose: the same each time."""
    run = export.run
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", run.name).strip("-._")[:60] or "run"
    return f"{slug}-step{export.checkpoint.step}-export{export.pk}"


def source_of(export: Export) -> str:
    """Return the export's folder on its node."""
    return str(export.folder.model)


def _where(export: Export, user: User, destination: Destination | None, folder: str, name: str) -> Where:
    if destination is not None and folder:
        raise Refused([Problem("path", "a destination is chosen as well", "Leave one of the two out.")])
    if destination is not None:
        return _at_destination(export, destination, name)
    if not folder:
        raise Refused([Problem("destination", "none is chosen", "Choose one, or give a folder.")])
    if name:
        raise Refused([Problem("name", "a path is given, and its last part is the name", "Leave name out.")])
    if not user.is_staff:
        raise Refused([Problem("path", "only staff may name a folder", "Choose a destination; staff can add one.")])
    target = parse_target({"kind": "path", "folder": folder})
    return _said(target, export, None)


def _at_destination(export: Export, destination: Destination, name: str) -> Where:
    name = name or usual_name(export)
    if not NAME.fullmatch(name) or name.endswith(WORKING):
        fix = "Use letters, digits, dots, hyphens and underscores, beginning with a letter or digit."
        raise Refused([Problem("name", "it can't be the name of a folder", fix)])
    try:
        problems = missing_secrets(destination.kind, destination.secrets) if destination.kind != "node" else []
    except WrongKey as error:
        problems = [Problem("secret", str(error), "Enter the secret anew.")]
    if problems:
        why = f"{destination} lacks its secret ({', '.join(p.field for p in problems)})"
        raise Refused([Problem("destination", why, "A staff account enters it on the page Destinations.")])
    raw = destination.target(name)
    node = destination.node if destination.kind == "node" and destination.node_id != export.node_id else None
    found = parse_target(raw | ({"kind": "path"} if raw["kind"] == "node" else {}))
    return _said(found, export, node)


def _said(found: PathTarget | S3Target | HubTarget, export: Export, node: Node | None) -> Where:
    """`node`: another than the export's own, where it goes to one."""
    target, on = found.model_dump(mode="json"), node or export.node
    assert on is not None
    at = f" on {on}" if found.kind == "path" else ""
    return Where(target, node, f"{found.place}{at}"[:1000], spot_of(target, on.pk))


def _check(export: Export, where: Where, replace: bool) -> None:
    job_of(export, where.target, replace, events="/events.jsonl")  # on another node, too: disks can be shared
    other = Delivery.objects.exclude(state__in=Delivery.STATES.ended).filter(spot=where.spot).first()
    if other is not None:
        raise _under_way(f"delivery {other.pk}")


def _made(**facts: Any) -> Delivery:
    """Store the delivery; raise Refused where another to the same place came first, just now."""
    try:
        with transaction.atomic():
            return Delivery.objects.create(**facts)
    except IntegrityError:
        raise _under_way("another delivery") from None


def _under_way(which: str) -> Refused:
    return Refused([Problem("destination", f"{which} to it is under way", "Wait for its end.")])


def job_of(export: Export, target: dict[str, Any], replace: bool, events: str) -> DeliverJob:
    """Return what the node is told; raise Refused where the place is the export's own folder, or around it."""
    job = DeliverJob.model_construct(source=source_of(export), target=parse_target(target), replace=replace,
                                     events=events)  # fmt: skip
    return parse_job(job.model_dump_json())
