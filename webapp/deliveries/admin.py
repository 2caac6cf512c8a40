"""Destinations and deliveries in the admin; the sealed secrets are in no field."""

from __future__ import annotations

from django.contrib import admin

from webapp.facts import FactsAdmin

from .models import Delivery, Destination


@admin.register(Destination)
class DestinationAdmin(FactsAdmin):
    """Made and changed on the page Destinations alone, where everything is checked."""

    list_display = ["name", "kind", "node", "made_by", "created_at", "changed_at"]
    list_filter = ["kind"]
    search_fields = ["name"]
    list_select_related = ["node", "made_by"]
    fields = ["name", "kind", "settings", "node", "secret_names", "made_by", "created_at", "changed_at"]


@admin.register(Delivery)
class DeliveryAdmin(FactsAdmin):
    list_display = ["id", "export", "place", "state", "reason", "phase", "requested_by", "created_at", "ended_at"]
    list_filter = ["state", "reason", "created_at"]
    search_fields = ["=export__id", "place"]
    list_select_related = ["export__checkpoint__attempt", "requested_by"]
