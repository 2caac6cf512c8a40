"""Data sets in the admin. A version is named by its content, so it is only read."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.facts import FactsAdmin

from .models import Dataset, Version


@admin.register(Dataset)
class DatasetAdmin(admin.ModelAdmin):
    list_display = ["name", "owner", "created_at"]
    list_filter = ["created_at"]
    search_fields = ["name", "owner__username"]
    list_select_related = ["owner"]
    readonly_fields = ["created_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # a data set begins with its rows: upload them on the site


@admin.register(Version)
class VersionAdmin(FactsAdmin):
    list_display = ["dataset", "number", "format", "rows", "test_rows", "bytes", "digest", "created_at"]
    list_filter = ["format", "created_at"]
    search_fields = ["dataset__name", "digest"]
    list_select_related = ["dataset"]
