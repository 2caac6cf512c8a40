"""Runs, exports and models in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from training.spec.lint import Refused
from webapp.facts import FactsAdmin

from .. import actions
from ..models import Attempt, Export, ModelSource, Placement, Run, Sketch, Tag, Transition


class FactsInline(admin.TabularInline):
    extra = 0
    can_delete = False
    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        return self.fields

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class TransitionInline(FactsInline):
    model = Transition
    fields = ["at", "old", "new", "actor", "cause", "attempt"]


class AttemptInline(FactsInline):
    model = Attempt
    fields = ["number", "resume_from", "world_size", "reason", "created_at", "started_at", "ended_at"]


class PlacementInline(FactsInline):
    model = Placement
    fields = ["rank", "node", "prepared_at", "started_at", "unreachable_since", "proven_gone_at", "proof", "exit"]


class TagInline(FactsInline):
    model = Tag
    fields = ["name"]


@admin.register(Run)
class RunAdmin(FactsAdmin):
    """A run's state is moved by actions alone; the admin offers Stop and Archive."""

    list_display = ["id", "name", "state", "reason", "step", "total_steps", "cluster", "owner", "created_at"]
    list_display_links = ["id", "name"]
    list_filter = [
        "state", "reason", "cluster", "preset", "created_at", ("archived_at", admin.EmptyFieldListFilter)
    ]  # fmt: skip
    search_fields = ["=id", "name", "owner__username", "reason_text", "notes", "=tags__name"]
    list_select_related = ["cluster", "owner"]
    date_hierarchy = "created_at"
    inlines = [TagInline, AttemptInline, TransitionInline]
    actions = ["stop", "archive"]

    @admin.action(description="Stop: save at the end of the step, then end", permissions=["stop"])
    def stop(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, actions.stop, "stop requested")

    @admin.action(description="Archive: leave out of lists; nothing is deleted", permissions=["stop"])
    def archive(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, actions.archive, "archived")

    def _each(self, request: HttpRequest, runs: QuerySet[Run], act: Callable[[Run, str], None], done: str) -> None:
        for run in runs:
            try:
                act(run, request.user.get_username())
                self.message_user(request, f"{run}: {done}", messages.SUCCESS)
            except Refused as refused:
                self.message_user(request, f"{run}: {refused}", messages.WARNING)

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_run")


@admin.register(Tag)
class TagAdmin(FactsAdmin):
    list_display = ["name", "run"]
    search_fields = ["=name", "=run__id", "run__name"]
    list_select_related = ["run"]


@admin.register(Sketch)
class SketchAdmin(FactsAdmin):
    list_display = ["run", "attempt", "step", "last", "odd", "stride"]
    list_filter = ["odd"]
    search_fields = ["=run__id", "run__name"]
    list_select_related = ["run"]


@admin.register(Attempt)
class AttemptAdmin(FactsAdmin):
    list_display = ["id", "run", "number", "reason", "world_size", "resume_from", "created_at", "ended_at"]
    list_filter = ["reason", "created_at"]
    search_fields = ["=run__id", "run__name"]
    list_select_related = ["run", "resume_from__attempt"]
    inlines = [PlacementInline]


@admin.register(Export)
class ExportAdmin(FactsAdmin):
    list_display = ["id", "checkpoint", "dtype", "state", "reason", "phase", "bytes", "node", "created_at", "ended_at"]
    list_filter = ["state", "dtype", "reason", "created_at"]
    search_fields = ["=checkpoint__attempt__run__id", "checkpoint__attempt__run__name"]
    list_select_related = ["checkpoint__attempt", "node"]


@admin.register(ModelSource)
class ModelSourceAdmin(admin.ModelAdmin):
    """Its place is fixed once a run has used it: the run's record would otherwise name other weights."""

    list_display = ["name", "location", "revision"]
    search_fields = ["name", "location"]

    def get_readonly_fields(self, request: HttpRequest, obj: ModelSource | None = None) -> list[str]:
        return ["location", "revision"] if obj is not None and obj.runs.exists() else []
