"""The list of 10,000 runs, and 20 runs of 100,000 points beside each other: python -m tests.bench.lists

The list is asked for in every order and through every filter, through Django's test client and over HTTP from the web
server as it is deployed, one request at a time. In Chromium, from navigation until the frame after the first row is
there. The comparison is the answer that all its curves come in, over HTTP, along steps, tokens and time. Each goal
holds where it does at the 95th percentile. Rows of the list are made at once; the series of the long runs are stored
as lines are once they are folded.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ..live.told import tell

LIST_GOAL, ROW_GOAL, COMPARE_GOAL = 60.0, 1000.0, 500.0  # ms, at the 95th percentile


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lists")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--compared", type=int, default=20)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=20, help="each address is asked for")
    parser.add_argument("--postgres", action="store_true", help="a private PostgreSQL in the place of SQLite")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-lists-") as name, ExitStack() as stack:
        from ..following.service import database, private_redis

        os.environ["SHARDBOARD_STATE"] = name
        stack.enter_context(database(options.postgres))
        stack.enter_context(private_redis(Path(name) / "redis"))
        return _measured(options, Path(name), stack)


def _measured(options: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    from ..live.web import Web
    from . import asking, site

    session, long_ones = site.ready(folder, options.runs, options.compared, options.points)
    told = [_told("the list, Django's test client", asking.through_client(session, options.times), LIST_GOAL)]
    base = stack.enter_context(Web.started(folder)).url
    told += [
        _told("the list, over HTTP", asking.over_http(base, session, asking.LISTS, options.times), LIST_GOAL),
        _told("the list, first row drawn in Chromium", asking.first_rows(base, session, options.times), ROW_GOAL),
    ]
    for x in ("step", "tokens", "time"):
        address = asking.comparison(long_ones, x)
        name = f"{options.compared} runs of {options.points:,} points compared along {x}"
        told.append(_told(name, asking.over_http(base, session, [address], options.times), COMPARE_GOAL))
    return 0 if all(told) else 1


def _told(name: str, taken: Sequence[float], goal: float) -> bool:
    return tell(name, taken, {"95th percentile": goal}, f"{len(taken)} requests", digits=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
