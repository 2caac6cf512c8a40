"""What was found, written into the rows of a preflight."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem
from webapp.preflights.models import Cell, Preflight, State

from .finding import Finding, Findings, bad

UNFINISHED = Problem("preflight", "the check did not come to an end", "Check again.")


def fill(preflight: Preflight, node_id: int, findings: Findings) -> None:
    """Write a node's findings; one that is written twice is as the second says."""
    rows = list(preflight.cells.filter(node_id=node_id, check_name__in=findings))
    for row in rows:
        _set(row, findings[row.check_name])
    Cell.objects.bulk_update(rows, ["state", "text", "field", "fix", "at"])


def close(preflight: Preflight, problem: Problem = UNFINISHED, signature: str = "") -> None:
    """End a preflight; what is still waiting is told to be unfinished. The first to end it has ended it."""
    with transaction.atomic():
        ended = Preflight.objects.filter(pk=preflight.pk, ended_at=None)
        if not ended.update(ended_at=timezone.now(), signature=signature):
            return
        rows = list(preflight.cells.filter(state=State.WAITING))
        for row in rows:
            _set(row, bad(problem))
        Cell.objects.bulk_update(rows, ["state", "text", "field", "fix", "at"])


def record(preflight: Preflight, found: Mapping[int, Findings]) -> None:
    """Write a preflight that is over at once. `found`: findings by a node's key."""
    rows = []
    for node_id, findings in found.items():
        for check, finding in findings.items():
            row = Cell(preflight=preflight, node_id=node_id, check_name=check)
            _set(row, finding)
            rows.append(row)
    with transaction.atomic():
        preflight.ended_at = timezone.now()
        preflight.save()
        Cell.objects.bulk_create(rows)


def _set(row: Cell, finding: Finding) -> None:
    row.state, row.text, row.field, row.fix = finding.state, finding.text, finding.field[:50], finding.fix
    row.at = timezone.now()
