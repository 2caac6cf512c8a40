"""Notices and their messages in the admin, to be read; a subscription can be deleted. Nothing sealed is in a field."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.facts import FactsAdmin

from .models import Notice, Sending, Subscription, Watch


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


@admin.register(Subscription)
class SubscriptionAdmin(FactsAdmin):
    list_display = ["user", "way", "where", "about", "made_at"]
    list_filter = ["way", "scope"]
    search_fields = ["user__username", "address", "shown"]
    list_select_related = ["user"]
    fields = ["user", "way", "address", "shown", "scope", "run", "kinds", "site", "made_at"]

    actions = ["unsubscribe"]

    @admin.action(description="Delete: nothing more is sent", permissions=["unsubscribe"])
    def unsubscribe(self, request: HttpRequest, subscriptions: QuerySet[Subscription]) -> None:
        count = subscriptions.count()
        subscriptions.delete()
        self.message_user(request, f"{count} deleted: nothing more is sent by them.")

    def has_unsubscribe_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("notices.delete_subscription")


@admin.register(Sending)
class SendingAdmin(FactsAdmin):
    list_display = ["key", "subscription", "made_at", "tries", "due_at", "sent_at", "given_up_at", "problem"]
    list_filter = [("sent_at", admin.EmptyFieldListFilter), ("given_up_at", admin.EmptyFieldListFilter), "made_at"]
    search_fields = ["key", "subscription__user__username", "problem"]
    list_select_related = ["subscription"]
