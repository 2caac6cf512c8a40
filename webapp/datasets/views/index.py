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
    page = Paginator(rows.order_by("name"), PAGE).get_page(request.GET.get("page"))
    return render(
        request, "datasets/list.html", {"page": page, "rows": [(row, row.latest) for row in page.object_list]}
    )
