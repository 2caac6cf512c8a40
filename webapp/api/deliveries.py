"""Exports sent elsewhere."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.responses import Status
from pydantic import ConfigDict

from webapp.deliveries.actions import deliver
from webapp.deliveries.models import Delivery, Destination
from webapp.runs.actions import cancel
from webapp.runs.models import Export

from .finders import Ref, actor_of, by_id, named, user_of
from .paging import Page
from .shapes.deliveries import DeliveryOut, DestinationOut

router = Router(tags=["deliveries"])


class NewDelivery(Schema):
    model_config = ConfigDict(extra="forbid")

    destination: Ref | None = Field(None, description="Name or id of a destination.")
    path: str = Field("", max_length=1000, description="In its place a folder on the export's node; staff only.")
    name: str = Field("", max_length=100, description="What it is called there. Empty: by run, step and export.")
    replace: bool = Field(False, description="Other content in that place may go; without it that is refused.")


def _deliveries() -> QuerySet[Delivery]:
    names = ("export__checkpoint__attempt", "destination", "requested_by", "to_node")
    return Delivery.objects.select_related(*names)


@router.get("/destinations", response=Page[DestinationOut], operation_id="list_destinations")
def list_destinations(request: HttpRequest) -> Page[DestinationOut]:
    """List where exports can be sent; staff adds to it on the site."""
    rows = Destination.objects.select_related("node")
    return Page[DestinationOut](items=[DestinationOut.of(row) for row in rows])


@router.post("/exports/{int:export_id}/deliveries", response={201: DeliveryOut}, operation_id="create_delivery")
def create_delivery(request: HttpRequest, export_id: int, body: NewDelivery) -> Status[DeliveryOut]:
    """Send a ready export to a destination. Sent there again it changes nothing, and says so."""
    export = by_id(Export.objects.all(), export_id, "export")
    to = named(Destination.objects.all(), body.destination, "destination") if body.destination is not None else None
    made = deliver(export, user_of(request), to, folder=body.path, name=body.name, replace=body.replace)
    return Status(201, DeliveryOut.of(made, request))


@router.get("/exports/{int:export_id}/deliveries", response=Page[DeliveryOut], operation_id="list_deliveries")
def list_deliveries(request: HttpRequest, export_id: int) -> Page[DeliveryOut]:
    """List an export's deliveries, the newest first; 100 at most."""
    export = by_id(Export.objects.all(), export_id, "export")
    rows = _deliveries().filter(export=export)[:100]
    return Page[DeliveryOut](items=[DeliveryOut.of(row, request) for row in rows])


@router.get("/deliveries/{int:delivery_id}", response=DeliveryOut, operation_id="read_delivery", url_name="delivery")
def read_delivery(request: HttpRequest, delivery_id: int) -> DeliveryOut:
    """Read a delivery: state, progress, and where it lies with its hashes."""
    return DeliveryOut.of(by_id(_deliveries(), delivery_id, "delivery"), request)


@router.post("/deliveries/{int:delivery_id}/cancel", response=DeliveryOut, operation_id="cancel_delivery")
def cancel_delivery(request: HttpRequest, delivery_id: int) -> DeliveryOut:
    """Have a delivery ended. What has arrived is kept beside the place, so that the next try goes on from it."""
    found = by_id(_deliveries(), delivery_id, "delivery")
    cancel(found, actor_of(request))
    return DeliveryOut.of(by_id(_deliveries(), delivery_id, "delivery"), request)
