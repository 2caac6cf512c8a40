"""Nodes: list, read, add, change, remove. Whoever may do it on the site may do it here."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict

from training.spec.lint import Problem, Refused
from webapp.dispatch import check_node
from webapp.fleet import actions, enrol
from webapp.fleet.models import Identity, Node

from .finders import Ref, by_id, named, staff_of
from .paging import Page
from .shapes.fleet import NodeOut

router = Router(tags=["nodes"])
ONE = "/nodes/{int:node_id}"


class NodeFields(Schema):
    """What can be said of a node. `python` empty: `provision` makes one, and the node waits out of service."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    cluster: str | None = Field(None, description="Name; a new one makes the cluster.")
    address: str | None = None
    port: int | None = Field(None, ge=1, le=65535)
    user: str | None = None
    identity: Ref | None = None
    jump: Ref | None = Field(None, description="Node through which it is reached; null: directly.")
    python: str | None = None
    scratch: str | None = None
    processes: int | None = Field(None, ge=1, le=64)
    accelerator: bool | None = None
    internal_address: str | None = None
    interface: str | None = None
    gpu_hour_price: float | None = Field(None, ge=0, allow_inf_nan=False, description="null: none is known.")
    labels: list[str] | None = None
    notes: str | None = Field(None, max_length=20_000)


class NewNode(NodeFields):
    """Besides its fields how its host key is known: the key itself, or the fingerprint that the host must show."""

    host_key: str = Field("", max_length=20_000, description="Public key in OpenSSH format.")
    fingerprint: str = Field("", max_length=100, description="SHA256:... as `ssh-keygen -l` on the host says it.")


def everywhere() -> QuerySet[Node]:
    return Node.objects.select_related("cluster", "identity", "jump").prefetch_related("claims__attempt")


def read(node_id: int) -> NodeOut:
    return NodeOut.of(by_id(everywhere(), node_id, "node"))


@router.get("/nodes", response=Page[NodeOut], operation_id="list_nodes")
def list_nodes(
    request: HttpRequest,
    cluster: Annotated[str, Query(max_length=50)] = "",
    label: Annotated[str, Query(max_length=30)] = "",
    removed: Annotated[bool, Query(description="Those that are removed, in place of the others.")] = False,
) -> Page[NodeOut]:
    """List the nodes."""
    rows = everywhere().filter(removed_at__isnull=not removed)
    if cluster:
        rows = rows.filter(cluster__name=cluster)
    return Page[NodeOut](items=[NodeOut.of(node) for node in rows if not label or label in node.labels])


@router.get(ONE, response=NodeOut, operation_id="read_node")
def read_node(request: HttpRequest, node_id: int) -> NodeOut:
    """Read a node: readiness, what its last check found, which run holds it."""
    return read(node_id)


@router.post("/nodes", response={201: NodeOut}, operation_id="add_node")
def add_node(request: HttpRequest, body: NewNode) -> Status[NodeOut]:
    """Add a node, its host key pinned. Without `host_key` or `fingerprint` it is refused with what the host shows."""
    actor = staff_of(request, "add nodes")
    if missing := [n for n in ("name", "cluster", "address", "user", "identity", "scratch") if not getattr(body, n)]:
        raise Refused([Problem(name, "it is missing", "Give it.") for name in missing])
    node = Node()
    cluster = _apply(node, body)
    node.host_key = enrol.confirmed_key(node, body.host_key, body.fingerprint)
    enrol.put_node(node, cluster, actor)
    check_node(node.pk)
    return Status(201, read(node.pk))


@router.patch(ONE, response=NodeOut, operation_id="change_node")
def change_node(request: HttpRequest, node_id: int, body: NodeFields) -> NodeOut:
    """Change what is given; the pinned host key stays. The node is checked anew."""
    _change(node_id, body, staff_of(request, "change nodes"))
    return read(node_id)


@transaction.atomic
def _change(node_id: int, body: NodeFields, actor: str) -> None:
    """Held from the reading on: the row is stored whole, and would undo what others do to it meanwhile."""
    held = everywhere().select_for_update(of=("self",), no_key=True)
    node = by_id(held, node_id, "node")
    enrol.put_node(node, _apply(node, body), actor)
    check_node(node.pk)


def _apply(node: Node, body: NodeFields) -> str:
    """Put what is given onto the node; return the name of its cluster."""
    given: dict[str, Any] = {
        name: getattr(body, name) for name in body.model_fields_set & NodeFields.model_fields.keys()
    }
    cluster = given.pop("cluster", None)
    if (identity := given.pop("identity", None)) is not None:
        node.identity = named(Identity.objects.all(), identity, "identity")
    if "jump" in given:
        jump = given.pop("jump")
        node.jump = None if jump is None else named(Node.objects.filter(removed_at=None), jump, "jump")
    for name, value in given.items():
        if value is not None or name == "gpu_hour_price":
            setattr(node, name, value)
    return str(cluster if cluster is not None else node.cluster.name)


@router.delete(ONE, response={204: None}, operation_id="remove_node")
def remove_node(
    request: HttpRequest,
    node_id: int,
    even_so: Annotated[bool, Query(description="Also where checkpoints or exports lie there.")] = False,
) -> Status[None]:
    """Remove a node: refused while something is on it. Runs keep their history, files on the host stay."""
    actor = staff_of(request, "remove nodes")
    actions.remove(by_id(everywhere(), node_id, "node"), actor, even_so=even_so)
    return Status(204, None)
