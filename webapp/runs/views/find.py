"""Fetch the run that an address names, or answer 404."""

from __future__ import annotations

from django.shortcuts import get_object_or_404

from ..models import Run


def get_run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.select_related("owner", "model", "dataset__dataset", "cluster"), pk=run_id)
