"""Leftovers in the admin, to be read."""

from __future__ import annotations

from django.contrib import admin

from webapp.facts import FactsAdmin

from .models import Leftover, NodeLook


@admin.register(Leftover)
class LeftoverAdmin(FactsAdmin):
    list_display = ["folder", "node", "why", "processes", "began_at", "seen_at", "end_asked_by", "ended_at"]
    list_filter = ["why", "node__cluster"]
    search_fields = ["folder", "node__name"]
    list_select_related = ["node"]


@admin.register(NodeLook)
class NodeLookAdmin(FactsAdmin):
    list_display = ["node", "asked_at", "due_at", "problem"]
    search_fields = ["node__name", "problem"]
    list_select_related = ["node"]
