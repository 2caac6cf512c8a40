"""The list of data sets."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from ..models import Dataset

PAGE = 50


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    rows = Dataset.objects.select_related("owner").annotate(
        version_count=Count("versions", distinct=True), run_count=Count("versions__runs", distinct=True)
    )
    page = Paginator(rows.prefetch_related("versions").order_by("name"), PAGE).get_page(request.GET.get("page"))
    # versions come newest first; row.latest would ask once a row
    listed = [(row, next(iter(row.versions.all()), None)) for row in page.object_list]
    return render(request, "datasets/list.html", {"page": page, "rows": listed})
