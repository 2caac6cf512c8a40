"""Exports: how far, and the files."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router

from webapp.runs import downloads
from webapp.runs.models import Export

from .finders import by_id
from .shapes.exports import ExportOut

router = Router(tags=["exports"])


@router.get("/exports/{int:export_id}", response=ExportOut, operation_id="read_export", url_name="export")
def read_export(request: HttpRequest, export_id: int) -> ExportOut:
    """Read an export: state, progress, files with their hashes, proof."""
    rows = Export.objects.select_related("checkpoint__attempt", "node")
    return ExportOut.of(by_id(rows, export_id, "export"), request)


BYTES = {"schema": {"type": "string", "format": "binary"}}
RANGES = {
    "responses": {
        200: {"description": "All of it", "content": {"application/octet-stream": BYTES}},
        206: {"description": "The range asked for", "content": {"application/octet-stream": BYTES}},
        304: {"description": "You have it already (If-None-Match)"},
        416: {"description": "The range is not within it"},
    }
}


FILE, ARCHIVE = "/exports/{int:export_id}/files/{path:name}", "/exports/{int:export_id}/archive"


@router.api_operation(["HEAD"], FILE, include_in_schema=False)
@router.get(FILE, operation_id="download_file", url_name="export_file", openapi_extra=RANGES)
async def download_file(request: HttpRequest, export_id: int, name: str) -> HttpResponseBase:
    """Download one file. Resumable: `Range`, `If-Range`; the ETag is the file's SHA-256."""
    return await downloads.file_response(request, export_id, name)


@router.api_operation(["HEAD"], ARCHIVE, include_in_schema=False)
@router.get(ARCHIVE, operation_id="download_archive", url_name="export_archive", openapi_extra=RANGES)
async def download_archive(request: HttpRequest, export_id: int) -> HttpResponseBase:
    """Download the model folder as one uncompressed tar.

    Resumable: `curl -fC - -o model.tar`; without `-f` a refusal would be saved as if it were bytes of it.
    Once unpacked, `sha256sum -c SHA256SUMS` checks all of it.
    """
    return await downloads.archive_response(request, export_id)
