"""The fault matrix: python -m tests.prove.faults [CASE ...] [--records FILE] [--table docs/faults.md]

Starts the whole service and three OpenSSH hosts with disks of their own, then breaks one thing after another. Without
names all cases are played and the table is written. With names those alone; with --records what FILE says of the
others stays, so that a case can be played again and the table made of the last play of each.
Prints a line a case; status 1 where one did not go as it has to.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.e2e.enlist import enlisted
from tests.e2e.stack import ROOT, Stack
from tests.faults import table
from tests.faults.case import CASES, Case, Record, play, read, write
from tests.faults.every import EVERY
from tests.faults.field import Field


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.faults", description="Play the fault matrix.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--records", type=Path, help="JSON: what was found so far, written after every case")
    parser.add_argument("--table", type=Path, help="default: docs/faults.md where all cases are played")
    options = parser.parse_args(argv)
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    chosen = [CASES[name] for name in options.cases] or list(EVERY)
    with tempfile.TemporaryDirectory(prefix="shardboard-faults-") as folder:
        records = play_all(chosen, Path(folder), options.records or Path(folder) / "records.json")
    path = options.table or (None if options.cases else ROOT / "docs" / "faults.md")
    if path:
        path.write_text(table.of(in_order(records)), "utf-8")
    return verdict([records[one.name] for one in chosen])


def verdict(records: list[Record]) -> int:
    good = sum(record.good for record in records)
    holds = good == len(records)
    print(f"cases that went as they have to: {good}; goal {len(records)}: {'holds' if holds else 'falls short'}")
    return 0 if holds else 1


def in_order(records: dict[str, Record]) -> list[Record]:
    return [records[one.name] for one in EVERY if one.name in records]


def play_all(chosen: list[Case], folder: Path, path: Path) -> dict[str, Record]:
    """Play them one after another on one field; return what is known of each case, by name, as `path` keeps it."""
    stack, found = Stack(folder / "state"), {record.name: record for record in read(path)}
    try:
        stack.start()
        with enlisted(stack, "faults", folder / "hosts", 3) as hosts:
            field = Field(stack, "faults", hosts)
            field.drain(hosts[2])
            for one in chosen:
                found[one.name] = play(one, field)
                print(line(found[one.name]), flush=True)
                write(list(found.values()), path)
    finally:
        stack.stop()
    return found


def line(record: Record) -> str:
    mark = "good" if record.good else "FAILED"
    noticed = "-" if record.seconds is None else f"{record.seconds:.1f} s"
    text = f"{mark} {record.name} ({record.took:.0f} s): noticed {noticed}, lost {record.lost}, left {record.left}"
    return f"{text}; {record.ended}; {record.saw}" + (f"\n    {record.failed}" if record.failed else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
