"""`{% load notices %}{% open_notices rows as noticed %}` once for a list, then `{% notice_marks noticed run %}`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django import template
from django.template.loader import render_to_string

from webapp.runs.models import Run

from .. import open_of
from ..models import Notice

register = template.Library()


class Row(Protocol):
    """A row of a list of runs."""

    @property
    def run(self) -> Run: ...


@register.simple_tag
def open_notices(rows: Iterable[Row]) -> dict[int, list[Notice]]:
    return open_of(row.run for row in rows)


@register.simple_tag
def notice_marks(noticed: dict[int, list[Notice]], run: Run) -> str:
    """Show a mark with a word for each kind that is open, once. Most rows have none, and render nothing."""
    kinds = {notice.kind: notice for notice in noticed.get(run.pk, [])}
    return render_to_string("notices/marks.html", {"notices": list(kinds.values()), "run": run}) if kinds else ""
