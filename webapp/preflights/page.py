"""The grid as pages and the API show it: one row a check, one column a node."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.fleet.models import Cluster, Node

from .checks import CHECKS, Check
from .models import Cell, Preflight, State

# Glyph, word and Tabler colour: the glyph and the word carry it without colour.
LOOKS = {
    State.WAITING: ("…", "waiting", "secondary"),
    State.OK: ("✓", "fine", "green"),
    State.WARNING: ("!", "look at it", "yellow"),
    State.PROBLEM: ("✕", "problem", "red"),
    State.NOTHING: ("–", "nothing to check", "secondary"),  # noqa: RUF001  a dash is meant
}
PAST = 12  # earlier preflights that the page links to


@dataclass(frozen=True)
class Shown:
    """A cell with its looks."""

    cell: Cell
    glyph: str
    word: str
    colour: str


@dataclass(frozen=True)
class Row:
    check: Check
    cells: list[Shown]


@dataclass(frozen=True)
class Grid:
    """`counts`: cells by state."""

    preflight: Preflight
    nodes: list[Node]
    rows: list[Row]
    counts: dict[str, int]

    @property
    def problems(self) -> list[tuple[Check, Cell]]:
        """Return the red cells with their checks: on a narrow page their columns may be out of sight."""
        every = [(row.check, shown.cell) for row in self.rows for shown in row.cells]
        return [(check, cell) for check, cell in every if cell.state == State.PROBLEM]

    @property
    def verdict(self) -> tuple[str, str]:
        """Return (words, colour)."""
        if problems := self.counts.get(State.PROBLEM, 0):
            return f"✕ {problems} problem{'s' if problems > 1 else ''}", "red"
        if self.preflight.ended_at is None:
            return "… looking", "azure"
        if warnings := self.counts.get(State.WARNING, 0):
            return f"! ready, with {warnings} warning{'s' if warnings > 1 else ''}", "yellow"
        return "✓ ready", "green"


def grid(preflight: Preflight) -> Grid:
    cells = list(preflight.cells.select_related("node").order_by("node__name"))
    nodes = list({cell.node_id: cell.node for cell in cells}.values())
    by_place = {(cell.check_name, cell.node_id): cell for cell in cells}
    rows = [Row(check, _shown(by_place, check, nodes)) for check in CHECKS]
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.state] = counts.get(cell.state, 0) + 1
    return Grid(preflight, nodes, [row for row in rows if row.cells], counts)


def _shown(by_place: dict[tuple[str, int], Cell], check: Check, nodes: list[Node]) -> list[Shown]:
    found = [by_place[check.slug, node.pk] for node in nodes if (check.slug, node.pk) in by_place]
    return [Shown(cell, *LOOKS[State(cell.state)]) for cell in found]


def newest(cluster: Cluster, key: int | None = None) -> Preflight | None:
    """Return the preflight with that id, or the newest; None where there is none."""
    rows = cluster.preflights.select_related("attempt__run", "cluster")
    return rows.filter(pk=key).first() if key else rows.first()
