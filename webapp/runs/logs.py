"""What the nodes of a run printed, as people read it: pages of lines, found by node and text, and all of it as text.

Colours are left out and of a progress bar its last state stays. The journal's number is the only cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from .models import Event, Placement, Run
from .tail import Row

PAGE = 200  # pieces, mostly a line each
SPAN = 200_000  # numbers that are looked through for one page: text is in no index, and a page has to answer soon
AT_ONCE = 2000  # pieces read together for a download, or where no database can look for a text
SHOWN = 4000  # characters of a piece on a page; a download has all
# Colours and cursor moves of terminals (ECMA-48), and titles (OSC).
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
WORD = re.compile(r"[!-~]+")  # of ASCII, whose cases SQLite knows; a colour seldom begins within one
Names = dict[tuple[int, int], str]  # (attempt's number, node's rank) -> node's name


@dataclass(frozen=True)
class Wanted:
    """Which lines: of all nodes or of one rank, those that hold `text` in whatever case or all."""

    node: int | None = None
    text: str = ""

    def rows(self, run_id: int) -> QuerySet[Event]:
        """Return the rows among which the lines are."""
        found = Event.objects.filter(run_id=run_id, kind="log").select_related("attempt")
        source = {"source__startswith": "log@"} if self.node is None else {"source": f"log@{self.node}"}
        return _holding(found.filter(**source), self.text)

    def matches(self, row: Event) -> bool:
        return self.text.lower() in plain(row.data.get("text", "")).lower()

    @property
    def is_all(self) -> bool:
        return self.node is None and not self.text


@dataclass(frozen=True)
class Page:
    """Lines, oldest first; `reached`: the number to ask on from, None where there is nothing beyond."""

    rows: list[Event]
    reached: int | None


def _holding(rows: QuerySet[Event], text: str) -> QuerySet[Event]:
    """Narrow `rows` by the longest word of `text`, as far as both databases do it alike; `matches` says the rest."""
    longest = max(WORD.findall(text), key=len, default="")
    return rows.filter(data__text__icontains=longest) if longest else rows


def older(run_id: int, before: int, wanted: Wanted) -> Page:
    """Return the last lines whose number is below `before`; a rare text's may be none, to be asked for further on."""
    start = 0 if wanted.is_all else max(0, before - SPAN)
    rows = wanted.rows(run_id).filter(number__lt=before, number__gte=start).order_by("-number")
    found, reached = _page(rows, wanted)
    return Page(found[::-1], reached or start or None)


def newer(run: Run, after: int, wanted: Wanted) -> Page:
    """Return the first lines whose number is above `after`."""
    end = run.journal if wanted.is_all else min(run.journal, after + SPAN)
    rows = wanted.rows(run.pk).filter(number__gt=after, number__lte=end).order_by("number")
    found, reached = _page(rows, wanted)
    return Page(found, reached or (end if end < run.journal else None))


def _page(rows: QuerySet[Event], wanted: Wanted) -> tuple[list[Event], int | None]:
    """Return the first lines of `rows` that are wanted, and the number of the last row looked at if there are more."""
    limit = PAGE if WORD.search(wanted.text) or not wanted.text else AT_ONCE
    looked = list(rows[: limit + 1])
    found = [row for row in looked[:limit] if wanted.matches(row)]
    if len(found) > PAGE:
        return found[:PAGE], found[PAGE - 1].number
    return found, looked[limit - 1].number if len(looked) > limit else None


def is_log(row: Event | Row) -> bool:
    return row.source.startswith("log@")


def log_entry(row: Event | Row, attempt: int) -> dict[str, Any]:
    """Return one piece of log, of the attempt of that number, as a page shows it."""
    return {
        "number": row.number,
        "attempt": attempt,
        "node": _rank(row),
        "text": clipped(plain(row.data.get("text", ""))),
    }


def _rank(row: Event | Row) -> int:
    return int(row.source.partition("@")[2])


def clipped(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text) - SHOWN} more characters in the download)"


def plain(text: str) -> str:
    """Return `text` without a terminal's colours; of a line overwritten by carriage returns, what stood last."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in ANSI.sub("", text).split("\n"))
    return CONTROL.sub("", "\n".join(lines)).rstrip("\n")


def names(run_id: int) -> Names:
    """Return what the nodes of each attempt are called."""
    found = Placement.objects.filter(attempt__run_id=run_id).order_by("attempt__number", "rank")
    return {(number, rank): name for number, rank, name in found.values_list("attempt__number", "rank", "node__name")}


def nodes(known: Names) -> dict[int, str]:
    """Return each rank with the names of the nodes that it was, newest attempt first."""
    found: dict[int, dict[str, None]] = {}
    for (_, rank), name in reversed(known.items()):
        found.setdefault(rank, {})[name] = None
    return {rank: ", ".join(found[rank]) for rank in sorted(found)}


def text_after(run: Run, after: int, node: int | None, known: Names) -> tuple[str, int]:
    """Return the next lines of a download, and the number they reach; 0 where there are none up to `run.journal`."""
    rows = Wanted(node).rows(run.pk).filter(number__gt=after, number__lte=run.journal)
    found = list(rows.order_by("number")[:AT_ONCE])
    lines = "".join(f"{line}\n" for line in _lines(found, known, alone=node is not None))
    return lines, found[-1].number if found else 0


def _lines(rows: Iterable[Event], known: Names, *, alone: bool) -> Iterator[str]:
    """Yield each line, with the name of its node before it unless one node's are asked for."""
    for row in rows:
        name = known.get((row.attempt.number, _rank(row)), f"node {_rank(row)}")
        for line in plain(row.data.get("text", "")).split("\n"):
            yield line if alone else f"{name}: {line}"
