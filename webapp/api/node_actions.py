"""What is done with a node that is there: out of service and back, checked, given an interpreter."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict

from webapp.dispatch import check_node
from webapp.fleet import actions, provisioning
from webapp.fleet.models import Node, Provision

from .finders import by_id, staff_of
from .nodes import ONE, everywhere, read
from .problems import Stop
from .shapes.fleet import NodeOut, ProvisionOut

router = Router(tags=["nodes"])


class Drain(Schema):
    model_config = ConfigDict(extra="forbid")

    why: str = Field("", max_length=1000, description="Shown to everybody; 200 characters at most.")


class Making(Schema):
    model_config = ConfigDict(extra="forbid")

    base: str = Field("", max_length=500, description="Absolute path of a Python there; empty: the best that is found.")
    gpu: bool | None = Field(None, description="With flash-attn and bitsandbytes; null: where the node has GPUs.")


@router.post(f"{ONE}/drain", response=NodeOut, operation_id="drain_node")
def drain_node(request: HttpRequest, node_id: int, body: Drain | None = None) -> NodeOut:
    """Take a node out of service: what is on it goes on, nothing new comes."""
    actor = staff_of(request, "take nodes out of service")
    actions.drain(_node(node_id), actor, body.why if body else "")
    return read(node_id)


@router.post(f"{ONE}/return", response=NodeOut, operation_id="return_node")
def return_node(request: HttpRequest, node_id: int) -> NodeOut:
    """Return a node to service; one that was removed is brought back first, and needs a second call to serve."""
    actor = staff_of(request, "return nodes to service")
    node = _node(node_id)
    if node.removed_at:
        actions.bring_back(node, actor)
    else:
        actions.restore(node, actor)
    return read(node_id)


@router.post(f"{ONE}/check", response={202: NodeOut}, operation_id="check_node")
def check(request: HttpRequest, node_id: int) -> Status[NodeOut]:
    """Have a node checked; `checked_at` and `problem` of the node tell when it was done and what was found."""
    node = _node(node_id)
    check_node(node.pk)
    return Status(202, read(node_id))


@router.post(f"{ONE}/provision", response={202: ProvisionOut}, operation_id="provision_node")
def provision_node(request: HttpRequest, node_id: int, body: Making | None = None) -> Status[ProvisionOut]:
    """Have an interpreter made on a node from the pinned requirements; the node uses it once training works with it."""
    actor = staff_of(request, "make interpreters")
    base, gpu = (body.base, body.gpu) if body else ("", None)
    made = provisioning.provision(_node(node_id), actor, base=base, gpu=gpu)
    return Status(202, ProvisionOut.of(made))


@router.get(f"{ONE}/provision", response=ProvisionOut, operation_id="read_provision")
def read_provision(request: HttpRequest, node_id: int) -> ProvisionOut:
    """Read the newest making of an interpreter on a node: how far it is, or what came of it."""
    return ProvisionOut.of(_newest(node_id))


@router.post(f"{ONE}/provision/cancel", response=ProvisionOut, operation_id="cancel_provision")
def cancel_provision(request: HttpRequest, node_id: int) -> ProvisionOut:
    """Stop the making of an interpreter; what was downloaded is kept for the next."""
    provisioning.cancel(_newest(node_id), staff_of(request, "make interpreters"))
    return ProvisionOut.of(_newest(node_id))


def _newest(node_id: int) -> Provision:
    found = Provision.objects.filter(node=_node(node_id)).first()
    if found is None:
        raise Stop(404, "id", "no interpreter was made on that node", "POST the same address has one made.")
    return found


def _node(node_id: int) -> Node:
    return by_id(everywhere(), node_id, "node")
