"""What an open run page asks for: new rows where no socket opens, and all points of its charts."""

from __future__ import annotations

import math

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from pydantic_core import to_json

from webapp.keys import key_of

from ..charts import MAX_POINTS, picture
from ..live import batch
from ..marks import marks as marks_of
from ..models import Run
from ..numbers import pieces
from ..windows import Window
from .find import get_run


@never_cache
@require_GET
def live(request: HttpRequest, run_id: int) -> JsonResponse:
    run = get_run(run_id)
    after = key_of(request.GET.get("after", "0"))
    if after is None:
        return JsonResponse({"error": "after: give the number of the newest event you have, 0 for none"}, status=400)
    return JsonResponse(batch(run.pk, after))


@never_cache
@require_GET
def series(request: HttpRequest, run_id: int) -> HttpResponse:
    run = get_object_or_404(Run.objects.only("journal"), pk=run_id)
    try:
        window = _window(request.GET)
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=400)
    names = [name for name in request.GET.getlist("name") if name]
    # thousands of numbers: a fifth of the time that the json module takes, and no blanks between them
    return HttpResponse(to_json(picture(run, window, names)), content_type="application/json")


def _window(query: QueryDict) -> Window:
    """Return the window that is asked for; raise ValueError with what is wrong and what to give."""
    points = key_of(query.get("points", "1500"))
    if points is None or not 10 <= points <= MAX_POINTS:
        raise ValueError(f"points: give a number from 10 to {MAX_POINTS}")
    low, high = _bound(query, "from", -math.inf), _bound(query, "to", math.inf)
    if low > high:
        raise ValueError("from: is past to; give the lower end of the window")
    return Window(low, high, points)


def _bound(query: QueryDict, name: str, default: float) -> float:
    text = query.get(name, "")
    try:
        found = float(text) if text else default
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise ValueError(f"{name}: give a number of the series' axis, or leave it out")
    return found


@never_cache
@require_GET
def marks(request: HttpRequest, run_id: int) -> JsonResponse:
    return JsonResponse({"marks": marks_of(get_run(run_id))})


@never_cache
@require_GET
async def csv(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """Send the points of the series called `name` (repeated), of all where none is: as they are, not thinned."""
    run = await sync_to_async(get_run)(run_id)
    answer = StreamingHttpResponse(pieces(run, request.GET.getlist("name")), content_type="text/csv; charset=utf-8")
    name = f"{slugify(run.name)[:60] or 'run'}-{run.pk}.csv"
    answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer["X-Accel-Buffering"] = "no"  # nginx would gather it on its disk first
    return answer
