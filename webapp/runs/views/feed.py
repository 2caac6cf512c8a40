"""What an open run page asks for: new rows where no socket opens, and all points of its charts."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.keys import key_of

from ..charts import MAX_POINTS, picture
from ..live import batch
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
def series(request: HttpRequest, run_id: int) -> JsonResponse:
    points = key_of(request.GET.get("points", "1500"))
    if points is None or not 10 <= points <= MAX_POINTS:
        return JsonResponse({"error": f"points: give a number from 10 to {MAX_POINTS}"}, status=400)
    return JsonResponse(picture(get_run(run_id), points))
