"""The live view against its goals: python -m tests.bench.live [--only NAME]

Each figure is taken by a command of its own, one after another. Status 1 where a goal is missed or one ends badly.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

MEASURES: dict[str, list[str]] = {
    "call": ["tests.bench.live.calling"],
    "line": ["tests.bench.live.latency", "--runs", "1", "--viewers", "1"],
    "crowd": ["tests.bench.live.latency", "--runs", "50", "--viewers", "20"],
    "picture": ["tests.bench.live.first"],
    "lists": ["tests.bench.lists"],
    "store": ["tests.bench.store"],
    "open": ["tests.bench.live.left_open"],
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live")
    parser.add_argument("--only", choices=MEASURES, action="append", help="this one; may be given several times")
    missed = [name for name in parser.parse_args(argv).only or MEASURES if not holds(name)]
    print(f"falls short: {', '.join(missed)}" if missed else "all goals hold")
    return 1 if missed else 0


def holds(name: str) -> bool:
    module, *words = MEASURES[name]
    print(f"==> {name}", flush=True)
    return subprocess.run([sys.executable, "-m", module, *words], env=os.environ, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
