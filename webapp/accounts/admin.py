"""Tokens in the admin: to see and to revoke. One is made on the site or by create_token, where its secret is shown."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from webapp.facts import FactsAdmin

from .models import Token


@admin.register(Token)
class TokenAdmin(FactsAdmin):
    list_display = ["name", "user", "scope", "hint", "created_at", "expires_at", "last_used_at", "revoked_at"]
    list_filter = ["scope", ("revoked_at", admin.EmptyFieldListFilter), "created_at"]
    search_fields = ["name", "user__username", "hint"]
    list_select_related = ["user"]
    fields = ["name", "user", "scope", "hint", "created_at", "expires_at", "last_used_at", "revoked_at"]
    actions = ["revoke"]

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[Token]) -> None:
        count = tokens.filter(revoked_at=None).update(revoked_at=timezone.now())
        self.message_user(request, f"{count} revoked: requests with them are refused from now on.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_token")
