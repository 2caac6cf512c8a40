"""Compare: why do these differ? The address says all that is shown, so that it can be sent to a colleague."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from training.spec.lint import Problem, Refused

from ..comparing.chosen import MOST, Chosen, chosen
from ..comparing.curves import ALONG, Pair, curves, metrics
from ..comparing.facts import sections
from ..comparing.finals import finals


@never_cache
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    try:
        found = chosen(request.GET.getlist("run"))
    except Refused as refused:
        return render(request, "runs/compare.html", {"problems": refused.problems, "most": MOST}, status=422)
    return render(request, "runs/compare.html", _context(request, found))


def _context(request: HttpRequest, found: Chosen) -> dict[str, Any]:
    names = metrics(found.runs)
    metric, x = request.GET.get("metric", ""), request.GET.get("x", "")
    return {
        "runs": found.runs,
        "missing": found.missing,
        "most": MOST,
        "metrics": names,
        "metric": metric if metric in names else next(iter(names), ""),
        "along": {name: along.label for name, along in ALONG.items()},
        "x": x if x in ALONG else "step",
        "finals": finals(found.runs),
        "sections": sections(found.runs),
        "config": {
            "series": reverse("runs:compared"),
            "csv": reverse("runs:compared_csv"),
            "runs": [{"id": run.pk, "name": run.name} for run in found.runs],
        },
    }


@never_cache
@require_GET
def compared(request: HttpRequest) -> JsonResponse:
    """Answer the curves of one metric: {"curves": {run: [[x, value]...], or null where it has no such x}}."""
    try:
        return JsonResponse({"curves": _asked(request)})
    except Refused as refused:
        return JsonResponse({"error": str(refused.problems[0])}, status=400)


@never_cache
@require_GET
def compared_csv(request: HttpRequest) -> HttpResponse:
    """Answer the same as a file of numbers: run, x, value; one that is not finite goes by its name."""
    try:
        found = _asked(request)
    except Refused as refused:
        return HttpResponse(str(refused.problems[0]), status=400, content_type="text/plain")
    rows = [f"{run},{x:.17g},{value}\n" for run, pairs in found.items() for x, value in pairs or ()]
    answer = HttpResponse(["run,x,value\n", *rows], content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="runs.csv"'
    return answer


def _asked(request: HttpRequest) -> dict[int, list[Pair] | None]:
    name, x = request.GET.get("name", ""), request.GET.get("x", "step")
    if x not in ALONG:
        raise Refused([Problem("x", "it is none", f"Say one of {', '.join(ALONG)}.")])
    return curves(chosen(request.GET.getlist("run")).runs, name, x)
