"""Exports: how far, and the files."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from webapp.runs.models import Export

from .finders import by_id
from .shapes.exports import ExportOut

router = Router(tags=["exports"])


@router.get("/exports/{int:export_id}", response=ExportOut, operation_id="read_export", url_name="export")
def read_export(request: HttpRequest, export_id: int) -> ExportOut:
    """Read an export: state, progress, files with their hashes, proof."""
    rows = Export.objects.select_related("checkpoint__attempt", "node")
    return ExportOut.of(by_id(rows, export_id, "export"), request)
