"""Notices in the admin, to be read."""

from __future__ import annotations

from django.contrib import admin

from webapp.facts import FactsAdmin

from .models import Notice, Watch


@admin.register(Notice)
class NoticeAdmin(FactsAdmin):
    list_display = ["run", "kind", "key", "figure", "began_at", "last_seen_at", "ended_at"]
    list_filter = ["kind", ("ended_at", admin.EmptyFieldListFilter), "noticed_at"]
    search_fields = ["=run__id", "run__name", "key", "text"]
    list_select_related = ["run"]


@admin.register(Watch)
class WatchAdmin(FactsAdmin):
    list_display = ["attempt", "looked_at", "due_at", "cursor"]
    search_fields = ["=attempt__run__id"]
    list_select_related = ["attempt"]
