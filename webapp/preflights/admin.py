"""Preflights in the admin, to be read."""

from __future__ import annotations

from django.contrib import admin

from webapp.facts import FactsAdmin

from .models import Cell, Preflight


@admin.register(Preflight)
class PreflightAdmin(FactsAdmin):
    list_display = ["id", "cluster", "attempt", "asked_by", "asked_at", "ended_at"]
    list_filter = ["cluster", "asked_at"]
    search_fields = ["=attempt__run__id", "asked_by"]
    list_select_related = ["cluster", "attempt"]
    fields = ["cluster", "attempt", "asked_by", "asked_at", "ended_at"]


@admin.register(Cell)
class CellAdmin(FactsAdmin):
    list_display = ["preflight", "node", "check_name", "state", "text", "at"]
    list_filter = ["check_name", "state", "node__cluster"]
    search_fields = ["node__name", "text"]
    list_select_related = ["preflight__cluster", "node"]
