"""One data set: what exactly will be trained?"""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from training.spec.lint import Refused
from training.spec.sections.data import Data
from webapp.runs.models import ModelSource, Run

from ..models import Dataset, Version
from ..preview import first_rows, render_rows, trained_choices

ROWS = 5
TOKENS = int(Data().max_length)
MOST_TOKENS = 131_072


@require_GET
def detail(request: HttpRequest, dataset_id: int) -> HttpResponse:
    dataset = get_object_or_404(Dataset.objects.select_related("owner"), pk=dataset_id)
    version = _version(dataset, request.GET.get("version", ""))
    context = {
        "dataset": dataset,
        "version": version,
        "versions": dataset.versions.order_by("-number"),
        "runs": Run.objects.filter(dataset__dataset=dataset).select_related("dataset", "owner")[:20],
        "models": ModelSource.objects.all(),
        **(_rows(request, version) if version else {}),
    }
    return render(request, "datasets/detail.html", context)


def _version(dataset: Dataset, number: str) -> Version | None:
    if not number:
        return dataset.latest
    found = dataset.versions.filter(number=int(number)).first() if number.isdecimal() and len(number) < 10 else None
    if found is None:
        raise Http404(f"{dataset} has no version {number[:20]}")
    return found


def _rows(request: HttpRequest, version: Version) -> dict[str, Any]:
    """Return the first rows through the chosen model's template, or as stored where none is chosen or it can't be."""
    model = _chosen(request.GET.get("model", ""))
    tokens = _count(request.GET.get("tokens", ""))
    choices = trained_choices(version)
    train_on = request.GET.get("train_on", choices[0])
    context: dict[str, Any] = {"model": model, "tokens": tokens, "problems": []}
    context |= {"choices": choices, "train_on": train_on}
    try:
        if model is not None:
            return context | {"rendered": render_rows(version, model, ROWS, tokens, train_on)}
    except Refused as refused:
        context["problems"] += refused.problems
    try:
        return context | {"raw": [json.dumps(row, ensure_ascii=False, indent=1) for row in first_rows(version, ROWS)]}
    except Refused as refused:
        context["problems"] += refused.problems
    return context


def _chosen(key: str) -> ModelSource | None:
    if not key:
        return None
    return ModelSource.objects.filter(pk=int(key)).first() if key.isdecimal() and len(key) < 19 else None


def _count(text: str) -> int:
    return min(MOST_TOKENS, int(text)) if text.isdecimal() and len(text) < 10 and int(text) else TOKENS
