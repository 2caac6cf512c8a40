"""How long an export will take, how far it is, and how it then was: the node's plan held against what happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.utils import timezone

from training.spec.exportplan import ExportPlan

from . import sources
from .models import Event, Export
from .states import ExportState

GATHER = "gather"  # the shards of other nodes are brought, which is counted here and not by the job
PHASES = (GATHER, "check", "stream", "prove")
WORDS = {GATHER: "bringing shards", "check": "checking", "stream": "writing", "prove": "proving"}
FORMER = 5  # exports of a node by which its plans are set right
EARLY = 0.02  # of the whole, before which what happened says nothing of what is left


def took(export: Export) -> float | None:
    """Return the seconds from the job's start to its end; None for one that was not, or was started again."""
    if export.state != ExportState.READY or export.start > 1 or not export.running_at or not export.ended_at:
        return None
    return (export.ended_at - export.running_at).total_seconds()


def seconds(export: Export, plan: ExportPlan) -> float | None:
    """Return what to expect: the node's own figure by how right it was about its last exports; None without one."""
    if not plan.seconds.total:
        return None
    rows = Export.objects.filter(node=export.node, state=ExportState.READY, start=1).exclude(pk=export.pk)
    rows = rows.exclude(running_at=None).exclude(plan={}).order_by("-pk")[:FORMER]
    ratios = [
        happened / told.seconds.total
        for row in rows
        if (happened := took(row)) and (told := row.foretold) and told.seconds.total
    ]
    return plan.seconds.total * (median(ratios) if ratios else 1.0)


@dataclass(frozen=True)
class Progress:
    """`done` of `total` bytes over all phases, `here` of `whole` of the present one alone.

    `left`: seconds, None where nothing tells or where it is being cancelled.
    """

    phase: str
    done: int
    total: int
    here: int
    whole: int
    left: float | None

    @property
    def word(self) -> str:
        return WORDS.get(self.phase, self.phase)

    @property
    def percent(self) -> float:
        return 100 * self.done / self.total if self.total else 0.0


def progress(export: Export, now: datetime | None = None) -> Progress | None:
    """Return how far a running export is; None before its first word."""
    gathers = export.state == ExportState.GATHERING and export.phase == GATHER
    if not gathers and (export.state != ExportState.RUNNING or not export.phase):
        return None
    plan, at = export.foretold or ExportPlan(), PHASES.index(export.phase) if export.phase in PHASES else 1
    sizes = [
        plan.reading.brought,
        0,
        plan.writing.bytes,
        plan.writing.bytes,
    ]  # shards are compared while they are read, for the stream
    sizes[at] = export.total
    here = min(export.done, export.total)
    tell = _left_to_bring if gathers else _left
    left = None if export.cancel_asked_at else tell(export, plan, at, now or timezone.now())
    return Progress(export.phase, sum(sizes[:at]) + here, sum(sizes), here, export.total, left)


def _left_to_bring(export: Export, plan: ExportPlan, at: int, now: datetime) -> float | None:
    """Return seconds of the whole: of bringing by how that went until now, and what is foretold of the rest."""
    source = sources.state(export.KIND, export.pk)
    moves = Event.objects.filter(attempt=export.attempt, source=source, data__new=ExportState.GATHERING)
    began = moves.order_by("-number").values_list("at", flat=True).first()
    if not (began and export.done and export.expected_seconds):
        return None
    return (now - began).total_seconds() * (export.total - export.done) / export.done + export.expected_seconds


def _left(export: Export, plan: ExportPlan, at: int, now: datetime) -> float | None:
    """Return seconds: those foretold, stretched by how the phases behind us went; None once they are over."""
    whole, began = export.expected_seconds, export.running_at
    if not whole or not began or not plan.seconds.total:
        return None
    parts = [0.0, plan.seconds.check, plan.seconds.stream, plan.seconds.prove]
    share = export.done / export.total if export.total else 0.0
    behind = (plan.seconds.start + sum(parts[:at]) + share * parts[at]) / plan.seconds.total
    said = _last_word(export)
    if said and behind > EARLY and (at > 1 or share):
        # at half of the way half of what was foretold is believed, half of what was seen
        seen = (said - began).total_seconds() / behind
        whole = whole * (1 - behind) + seen * behind
    left = whole - (now - began).total_seconds()
    return left if left > 0 else None


def _last_word(export: Export) -> datetime | None:
    """Return when its newest line of progress came."""
    source = sources.events(export.KIND, export.pk)
    rows = Event.objects.filter(attempt=export.attempt, source=source).order_by("-seq")
    return rows.values_list("received_at", flat=True).first()


@dataclass(frozen=True)
class Held:
    """One figure of the plan beside what it was."""

    name: str
    foretold: float
    happened: float
    unit: str


def held(export: Export) -> list[Held]:
    """Return the plan's figures against what happened; nothing before the export is ready."""
    plan = export.foretold
    if plan is None or export.state != ExportState.READY:
        return []
    weights = sum(file["size"] for file in export.files if str(file["name"]).endswith(".safetensors"))
    found = [Held("bytes of weights", plan.writing.bytes, weights, "bytes")]
    if export.expected_seconds and (happened := took(export)):
        found.append(Held("time", export.expected_seconds, happened, "seconds"))
    return found


def age(export: Export) -> timedelta | None:
    """Return how old the node's word is."""
    return timezone.now() - export.planned_at if export.planned_at else None
