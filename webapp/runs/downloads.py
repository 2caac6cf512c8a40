"""Send an export's files, or all as one tar, from the node that holds them: block by block, never kept here.

Both are resumable: lengths and strong tags follow from the export's manifest alone, so a range asked for tomorrow
is a range of the same bytes. A name is sent only where the manifest has it, so no path can lead elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import patch_cache_control
from django.utils.http import content_disposition_header, parse_etags
from django.utils.text import slugify

from training.spec.folder import Scratch
from training.spec.lint import Problem
from webapp.fleet.ssh import Host, SshError, connect
from webapp.fleet.vault import WrongKey
from webapp.ranges import Span, Unsatisfiable, entity_tag, requested

from .archive import Archive, Literal, Segment, Slice
from .models import Export
from .states import ExportState

MOST_TEXT = 1 << 18


class CannotSend(Exception):
    """Nothing was sent; `status` is what HTTP says."""

    def __init__(self, status: int, field: str, reason: str, fix: str):
        self.status = status
        self.problem = Problem(field, reason, fix)
        super().__init__(str(self.problem))


class Truncated(RuntimeError):
    """A file on the node is shorter than its manifest says: the connection ends, so that nobody takes it as whole."""


@dataclass(frozen=True)
class Thing:
    """What can be downloaded: its name, length in bytes, strong tag, and the pieces of a range."""

    filename: str
    size: int
    etag: str
    content_type: str
    archive: Archive | None = None
    name: str = ""

    def pieces(self, start: int, end: int) -> list[Segment]:
        if self.archive is not None:
            return list(self.archive.segments(start, end))
        return [Slice(self.name, start, end - start)]


async def file_response(request: HttpRequest, export_id: int, name: str) -> HttpResponseBase:
    """Answer with one file of the export. Raises CannotSend."""
    export = await _ready(export_id)
    listed = {file["name"]: file for file in export.files}
    if name not in listed:
        raise CannotSend(404, "name", "the export has no such file", f"It has {', '.join(sorted(listed))}.")
    file = listed[name]
    etag = f'"{file["sha256"]}"'
    thing = Thing(PurePosixPath(name).name, file["size"], etag, "application/octet-stream", name=name)
    return await _answer(request, export, thing)


async def archive_response(request: HttpRequest, export_id: int) -> HttpResponseBase:
    """Answer with the whole model folder as one tar. Raises CannotSend."""
    export = await _ready(export_id)
    return await _answer(request, export, _archive(export))


async def text(export_id: int, name: str) -> str:
    """Return the beginning of a text file of the export. Raises CannotSend."""
    export = await _ready(export_id)
    size = next((file["size"] for file in export.files if file["name"] == name), None)
    if size is None:
        raise CannotSend(404, "name", f"the export has no {name}", "It was made before such files were written.")
    body = await _open(export, [Slice(name, 0, min(size, MOST_TEXT))])
    return b"".join([block async for block in body]).decode("utf-8", "replace")


def _archive(export: Export) -> Thing:
    top = f"{slugify(export.run.name)[:80] or 'model'}-step{export.checkpoint.step}-{export.shown_dtype}"
    top += "-adapter" if export.adapter == "adapter" else ""
    files = tuple((file["name"], file["size"]) for file in export.files)
    archive = Archive(top, files, mtime=int((export.ended_at or export.created_at).timestamp()))
    etag = entity_tag(top, str(archive.mtime), *(str(file[key]) for file in export.files for key in ("name", "sha256")))
    return Thing(f"{top}.tar", archive.size, etag, "application/x-tar", archive=archive)


async def _ready(export_id: int) -> Export:
    rows = Export.objects.select_related("checkpoint__attempt__run", "node__identity")
    export = await rows.filter(pk=export_id).afirst()
    if export is None:
        raise CannotSend(404, "id", f"there is no export {str(export_id)[:30]}", "The run's page lists its exports.")
    if export.state != ExportState.READY or export.node is None:
        raise CannotSend(409, "state", f"the export is {export.state}", "Only one that is ready has files.")
    return export


async def _answer(request: HttpRequest, export: Export, thing: Thing) -> HttpResponseBase:
    try:
        span = requested(
            request.headers.get("Range"), thing.size, etag=thing.etag, if_range=request.headers.get("If-Range")
        )
    except Unsatisfiable as error:
        refused = HttpResponse(status=416)
        refused["Content-Range"] = error.content_range
        return refused
    if thing.etag in parse_etags(request.headers.get("If-None-Match", "")):
        return _dressed(HttpResponse(status=304), thing, None)
    if request.method == "HEAD":
        return _dressed(HttpResponse(), thing, None)
    part = span or Span(0, thing.size, thing.size)
    body = await _open(export, thing.pieces(part.start, part.end))
    return _dressed(StreamingHttpResponse(body, status=206 if span else 200), thing, span)


def _dressed(response: HttpResponseBase, thing: Thing, span: Span | None) -> HttpResponseBase:
    response["ETag"] = thing.etag
    response["Accept-Ranges"] = "bytes"
    patch_cache_control(response, private=True, no_transform=True)
    if response.status_code == 304:
        return response
    response["Content-Type"] = thing.content_type
    response["Content-Length"] = str(span.length if span else thing.size)
    response["Content-Disposition"] = content_disposition_header(True, thing.filename) or "attachment"
    if span:
        response["Content-Range"] = span.content_range
    return response


async def _open(export: Export, pieces: Sequence[Segment]) -> Body:
    """Connect, and see that all is there, while an error can still be answered. Raises CannotSend."""
    assert export.node is not None
    scratch = (export.slot or {}).get("scratch") or export.node.scratch
    folder = Scratch(PurePosixPath(scratch)).export(export.run.pk, export.pk).model
    try:
        async with AsyncExitStack() as stack:
            host = await stack.enter_async_context(connect(export.node))
            await _look(host, folder, pieces)
            return Body(stack.pop_all(), host, folder, pieces)
    except SshError as error:
        raise CannotSend(503, f"node {error.node}", error.why, error.fix) from error
    except WrongKey as error:
        raise CannotSend(503, f"node {export.node.name}", str(error), "Restore the key of the service.") from error


async def _look(host: Host, folder: PurePosixPath, pieces: Sequence[Segment]) -> None:
    for piece in pieces:
        if isinstance(piece, Slice) and await host.size(str(folder / piece.name)) < piece.offset + piece.length:
            raise CannotSend(503, f"node {host.name}", f"{piece.name} is gone or cut short there", "Export it again.")


class Body:
    """The bytes of `pieces`, read as they are asked for. Gives its connection back when read, left or never begun."""

    def __init__(self, stack: AsyncExitStack, host: Host, folder: PurePosixPath, pieces: Sequence[Segment]):
        self._stack, self._host, self._folder, self._pieces = stack, host, folder, pieces
        self._loop = asyncio.get_running_loop()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with self._stack:
            for piece in self._pieces:
                if isinstance(piece, Literal):
                    yield piece.data
                else:
                    async for block in self._read(piece):
                        yield block

    async def _read(self, piece: Slice) -> AsyncIterator[bytes]:
        sent = 0
        async for block in self._host.read_range(str(self._folder / piece.name), piece.offset, piece.length):
            sent += len(block)
            yield block
        if sent != piece.length:
            raise Truncated(f"{self._host.name}: {piece.name} ends {piece.length - sent} bytes early")

    def close(self) -> None:
        """Django calls this at the end of every answer, from a thread, also where nobody read the body."""
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._ending = self._loop.create_task(self._stack.aclose())  # kept, or it may be collected half-way
