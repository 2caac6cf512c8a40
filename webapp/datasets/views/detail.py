"""One data set: what exactly will be trained?"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from webapp.runs.models import Run

from ..models import Dataset, Version


@require_GET
def detail(request: HttpRequest, dataset_id: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.select_related("owner"), pk=dataset_id)
    context = {
        "dataset": dataset,
        "version": _version(dataset, request.GET.get("version", "")),
        "versions": dataset.versions.order_by("-number"),
        "runs": Run.objects.filter(dataset__dataset=dataset).select_related("dataset", "owner")[:20],
    }
    return render(request, "datasets/detail.html", context)


def _version(dataset: Dataset, number: str) -> Version | None:
    if not number:
        return dataset.latest
    found = dataset.versions.filter(number=int(number)).first() if number.isdecimal() and len(number) < 10 else None
    if found is None:
        raise Http404(f"{dataset} has no version {number[:20]}")
    return found
