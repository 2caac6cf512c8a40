"""The table of the fault matrix, out of the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .case import Record

HEAD = """\
# Faults

What was done to runs of two nodes, what the page showed, and what became of them. This page is written by \
`make prove-faults`: the whole service on one machine, OpenSSH hosts with addresses, processes and disks of their own, \
real supervisors, `accelerate launch` and a 5M-parameter Llama under FSDP2.

- **saw**: the top of the run's page, or the node's card, in its own words.
- **s**: seconds from the fault until page or API told of it; of a part of the service, until it was back; of a stop, \
until the run was proven stopped. Empty where there is nothing to be told.
- **lost**: lines on the nodes' disks that have no row, after all had time to arrive.
- **left**: processes of the run on any node when it had ended; empty while it goes on.
"""
COLUMNS = ("what was done", "saw", "ended", "s", "lost", "left")
LONGEST = 420  # characters of what was seen


def of(records: Sequence[Record]) -> str:
    """Return the page."""
    good = sum(record.good for record in records)
    parts = [HEAD, f"{good} of {len(records)} cases went as they have to.\n"]
    for group in dict.fromkeys(record.group for record in records):
        rows = _rows(record for record in records if record.group == group)
        parts.append(f"## {group[0].upper()}{group[1:]}\n\n{rows}")
    return "\n".join(parts)


def _rows(records: Iterable[Record]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    return "\n".join([*lines, *map(_row, records)]) + "\n"


def _row(record: Record) -> str:
    ended = record.ended if record.good else f"**FAILED**: {record.failed or record.ended}"
    seconds = "" if record.seconds is None else f"{record.seconds:.1f}"
    cells = (record.done, _cut(record.saw), _cut(ended), seconds, _count(record.lost), _count(record.left))
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Return what Markdown shows as it is, in one cell."""
    return " ".join(text.replace("|", "/").replace("<", "&lt;").split())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _count(number: int | None) -> str:
    return "" if number is None else str(number)
