"""Admin pages of rows that say what happened: to be read, never written."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest


class FactsAdmin(admin.ModelAdmin):
    """Nothing can be added, changed or deleted: that would make the record lie."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
