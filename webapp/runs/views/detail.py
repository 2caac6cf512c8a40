"""The run page: how is it, and can I trust it?"""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from .. import series
from ..models import Placement, Run
from ..page import PARTS
from .find import get_run
from .log import end

STATIC = settings.BASE_DIR / "webapp" / "static"
MODULES = (
    *("charts.js", "series.js", "link.js", "log.js", "logrows.js", "page.js"),
    *sorted(str(path.relative_to(STATIC)) for path in STATIC.glob("charts/*.js")),
)


@never_cache
@require_GET
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read the cursor first: whatever changes while the page is made comes again in the first batch."""
    found = get_run(run_id)
    cursor = found.journal
    live = {
        "run": found.pk,
        "cursor": cursor,
        "socket": f"/ws/runs/{found.pk}/",
        "poll": reverse("runs:live", args=[found.pk]),
        "series": reverse("runs:series", args=[found.pk]),
        "marks": reverse("runs:marks", args=[found.pk]),
        "csv": reverse("runs:csv", args=[found.pk]),
        "name": found.name,
        "known": [name for name, _ in series.names(found)],
        "names": {str(p.rank): p.node.name for p in _placements(found)},
        "part": reverse("runs:part", args=[found.pk, "NAME"]),
    }
    log = end(found, cursor)
    live["log"] = log["live"]
    parts = {name: make(found) for name, make in PARTS.items()}
    context = {"run": found, "live": live, "log": log, "log_nodes": log["nodes"], "parts": parts}
    context["modules"] = MODULES
    return render(request, "runs/detail.html", context)


def _placements(run: Run) -> list[Placement]:
    attempt = run.attempt
    return list(attempt.placements.select_related("node")) if attempt else []


@never_cache
@require_GET
def part(request: HttpRequest, run_id: int, name: str) -> HttpResponse:
    if name not in PARTS:
        raise Http404(f"a run page has no part {name}")
    found = get_run(run_id)
    return render(request, f"runs/parts/{name}.html", {"run": found, "part": PARTS[name](found)})
