"""What tests of checkpoints ask of a page and of rows."""

from __future__ import annotations

import html
from typing import Any

from webapp.runs.models import Checkpoint, Run


def at(run: Run, step: int) -> Checkpoint:
    return Checkpoint.objects.select_related("attempt__run").get(attempt__run=run, step=step)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(html.unescape(answer.content.decode()).split())


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])
