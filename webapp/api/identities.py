"""SSH identities: list, make. A private key is pasted in on the site alone, where no client writes it to a log."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict

from training.spec.lint import Refused
from webapp.fleet import enrol
from webapp.fleet.models import Identity

from .finders import staff_of
from .paging import Page
from .shapes.fleet import IdentityOut

router = Router(tags=["nodes"])


class NewIdentity(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100)


@router.get("/identities", response=Page[IdentityOut], operation_id="list_identities")
def list_identities(request: HttpRequest) -> Page[IdentityOut]:
    """List the SSH identities with their public keys."""
    rows = Identity.objects.prefetch_related("nodes").order_by("name")
    return Page[IdentityOut](items=[IdentityOut.of(row) for row in rows])


@router.post("/identities", response={201: IdentityOut}, operation_id="make_identity")
def make_identity(request: HttpRequest, body: NewIdentity) -> Status[IdentityOut]:
    """Make a key pair, and return its public half. Asked for again by the same name it is the same one."""
    staff_of(request, "make SSH identities")
    try:
        return Status(201, IdentityOut.of(enrol.make_identity(body.name)))
    except ValidationError as error:
        raise Refused(enrol.problems_of(error)) from None
