"""The series store on SQLite and PostgreSQL: python -m tests.bench.store [--only ingest|windows] [--on sqlite|postgres]

Ingest: bytes as nodes write them -> lines -> rows, and what is due folded, as the follower does it; in one process.
Windows: of one series of 10,000,000 points, 200 at random, through the page's own route.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

ENGINES = ("sqlite", "postgres")
PARTS = ("ingest", "windows")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.store")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--on", choices=ENGINES)
    options = parser.parse_args(argv)
    worst = 0
    for engine in [options.on] if options.on else ENGINES:
        for part in [options.only] if options.only else PARTS:  # Django knows one database in a process
            command = [sys.executable, "-m", "tests.bench.store.one", engine, part]
            worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
