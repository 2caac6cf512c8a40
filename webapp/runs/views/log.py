"""The log of a run: a page of it as JSON, and all of it as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.keys import key_of

from .. import logs
from ..models import Run
from .find import get_run

LONGEST = 200  # characters of a text that is looked for


@never_cache
@require_GET
def page(request: HttpRequest, run_id: int) -> JsonResponse:
    """Answer with the lines before the number `before` or past `after`; with neither, the end of the log."""
    run = get_run(run_id)
    numbers = {name: key_of(request.GET[name]) for name in ("before", "after", "node") if request.GET.get(name)}
    if wrong := _wrong(numbers, text := request.GET.get("text", "")):
        return JsonResponse({"error": wrong}, status=400)
    wanted = logs.Wanted(numbers.get("node"), text)
    if (after := numbers.get("after")) is not None:
        found = logs.newer(run, after, wanted)
    else:
        before = numbers.get("before")
        found = logs.older(run.pk, run.journal + 1 if before is None else before, wanted)
    return JsonResponse({
        "entries": [logs.log_entry(row, row.attempt.number) for row in found.rows],
        "reached": found.reached,
        "names": named(logs.names(run.pk)),
    })  # fmt: skip


def end(run: Run, cursor: int) -> dict[str, Any]:
    """Return what the run page is made with: the log's last lines up to `cursor`, and what its module has to know."""
    known = logs.names(run.pk)
    found = logs.older(run.pk, cursor + 1, logs.Wanted())
    entries = [logs.log_entry(row, row.attempt.number) for row in found.rows]
    for entry in entries:
        entry["name"] = known.get((entry["attempt"], entry["node"]), f"node {entry['node']}")
    live = {"page": reverse("runs:log", args=[run.pk]), "older": found.reached, "names": named(known)}
    return {"rows": entries, "older": found.reached, "nodes": logs.nodes(known), "live": live}


def named(known: logs.Names) -> dict[str, str]:
    """Return the nodes' names as a page takes them: {"attempt/rank": name}."""
    return {f"{attempt}/{rank}": name for (attempt, rank), name in known.items()}


def _wrong(numbers: dict[str, int | None], text: str) -> str:
    """Return what is wrong with a question, empty where nothing is."""
    if bad := [name for name, value in numbers.items() if value is None]:
        return f"{bad[0]}: give a whole number"
    if "before" in numbers and "after" in numbers:
        return "before, after: give one of both"
    if len(text) > LONGEST or "\0" in text:
        return f"text: give at most {LONGEST} characters, without NUL"
    return ""


@never_cache
@require_GET
def download(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Answer with the whole log as it is now, of all nodes or of one, as plain text."""
    run = get_run(run_id)
    node = key_of(asked) if (asked := request.GET.get("node", "")) else None
    if asked and node is None:
        return JsonResponse({"error": "node: give a node's rank"}, status=400)
    response = StreamingHttpResponse(_text(run, node), content_type="text/plain; charset=utf-8")
    part = "log" if node is None else f"log-{node}"
    name = f"run-{run.pk}-{slugify(run.name)[:60] or 'run'}-{part}.txt"
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name) or ""
    response["X-Accel-Buffering"] = "no"  # nginx would gather it on its disk first
    patch_cache_control(response, no_transform=True)
    return response


async def _text(run: Run, node: int | None) -> AsyncIterator[bytes]:
    known = await sync_to_async(logs.names)(run.pk)
    after = 0
    while True:
        text, after = await sync_to_async(logs.text_after)(run, after, node, known)
        if not after:
            return
        yield text.encode()
