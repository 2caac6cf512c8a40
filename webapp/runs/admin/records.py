"""What nodes wrote and what was made of it, in the admin."""

from __future__ import annotations

from django.contrib import admin

from webapp.facts import FactsAdmin

from ..models import (
    Checkpoint,
    CheckpointCopy,
    CheckpointPart,
    Chunk,
    Event,
    IdempotencyKey,
    Pause,
    Placement,
    SampleBlock,
    Series,
    Stream,
    Transition,
)


@admin.register(Checkpoint)
class CheckpointAdmin(FactsAdmin):
    """Pinned, noted and deleted on the pages of its run, which hold the refusals."""

    list_display = ["id", "attempt", "step", "nodes", "world_size", "created_at", "completed_at", "pinned",
                    "delete_asked_at", "deleted_at", "freed_bytes", "settled"]  # fmt: skip
    list_filter = [
        ("completed_at", admin.EmptyFieldListFilter), ("deleted_at", admin.EmptyFieldListFilter), "pinned", "settled"
    ]  # fmt: skip
    search_fields = ["=attempt__run__id", "attempt__run__name", "=step", "notes"]
    list_select_related = ["attempt"]


@admin.register(CheckpointCopy)
class CheckpointCopyAdmin(FactsAdmin):
    list_display = ["checkpoint", "node", "bytes", "parts", "pinned", "freed_bytes", "deleted_at", "answered_at"]
    list_filter = ["node", "pinned", ("deleted_at", admin.EmptyFieldListFilter)]
    search_fields = ["=checkpoint__attempt__run__id", "node__name", "problem"]
    list_select_related = ["checkpoint__attempt", "node"]


@admin.register(CheckpointPart)
class CheckpointPartAdmin(FactsAdmin):
    list_display = ["checkpoint", "node_rank", "bytes", "files"]
    list_filter = ["node_rank"]
    search_fields = ["=checkpoint__attempt__run__id"]
    list_select_related = ["checkpoint__attempt"]


@admin.register(Event)
class EventAdmin(FactsAdmin):
    list_display = ["run_id", "number", "kind", "source", "seq", "step", "at", "received_at"]
    list_display_links = ["number"]
    list_filter = ["kind", "received_at"]
    search_fields = ["=run__id", "=source", "=kind"]
    ordering = ["-id"]
    raw_id_fields = ["run", "attempt"]


@admin.register(Placement)
class PlacementAdmin(FactsAdmin):
    list_display = ["attempt", "rank", "node", "prepared_at", "started_at", "unreachable_since", "proven_gone_at"]
    list_filter = ["node", ("unreachable_since", admin.EmptyFieldListFilter)]
    search_fields = ["=attempt__run__id", "node__name"]
    list_select_related = ["attempt", "node"]


@admin.register(Series)
class SeriesAdmin(FactsAdmin):
    list_display = ["attempt", "name", "axis", "last_x", "last_value", "last_odd"]
    list_filter = ["axis"]
    search_fields = ["=attempt__run__id", "name"]
    list_select_related = ["attempt"]


@admin.register(Chunk)
class ChunkAdmin(FactsAdmin):
    list_display = ["series", "level", "loose", "first", "last", "count"]
    search_fields = ["=series__attempt__run__id", "=series__name"]
    list_select_related = ["series__attempt"]
    ordering = ["-id"]


@admin.register(SampleBlock)
class SampleBlockAdmin(FactsAdmin):
    list_display = ["run_id", "source", "first", "last", "count"]
    list_display_links = ["first"]
    search_fields = ["=run__id", "=source"]
    ordering = ["-id"]


@admin.register(Stream)
class StreamAdmin(FactsAdmin):
    list_display = ["attempt", "source", "node", "offset", "last_seq", "closed_at"]
    list_filter = ["node", ("closed_at", admin.EmptyFieldListFilter)]
    search_fields = ["=attempt__run__id", "source", "path"]
    list_select_related = ["attempt", "node"]


@admin.register(Transition)
class TransitionAdmin(FactsAdmin):
    list_display = ["run_id", "old", "new", "actor", "cause", "at"]
    list_display_links = ["new"]
    list_filter = ["new", "at"]
    search_fields = ["=run__id", "actor", "cause"]
    ordering = ["-id"]


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(FactsAdmin):
    list_display = ["key", "user", "run", "created_at"]
    list_filter = ["created_at"]
    search_fields = ["key", "user__username", "=run__id"]
    list_select_related = ["user", "run"]


@admin.register(Pause)
class PauseAdmin(FactsAdmin):
    list_display = ["id", "cluster", "by", "at", "why", "ended_at", "ended_by"]
    list_filter = ["cluster", ("ended_at", admin.EmptyFieldListFilter)]
    search_fields = ["by", "why", "cluster__name"]
    list_select_related = ["cluster"]
