"""Exports killed and resumed: python -m tests.prove.exports [--kills 10] [--seed 0] [--layers 2]

One checkpoint of two ranks is exported unbroken; then, over and over, an export of it is killed with signal 9 at a
random moment between its first line and its end, started again, and killed no more. What it leaves has to be the
unbroken one's, byte for byte. The moments are drawn over all phases by seed: a phase, and a share of what it took
in the unbroken export.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench.exporting import making

from .broken import Broken, Outcome

SIZE = making.Size("prove", 1024, 2816, 2, "float32")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.exports")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial; each has the next")
    parser.add_argument("--layers", type=int, default=24, help="of a Llama of which one takes 51 MB")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-export-") as name:
        folder = Path(name)
        made = making.Size(SIZE.name, SIZE.hidden, SIZE.inner, options.layers, SIZE.dtype)
        making.make(folder, made, 0)
        broken = Broken.of(folder)
        outcomes = [_trial(broken, seed) for seed in range(options.seed, options.seed + options.kills)]
    good = sum(not outcome.differs and outcome.killed for outcome in outcomes)
    holds = good == options.kills
    print(
        f"exports resumed after kill -9, equal to the unbroken one byte for byte: {good}; goal {options.kills}:"
        f" {'holds' if holds else 'falls short'}"
    )
    return 0 if holds else 1


def _trial(broken: Broken, seed: int) -> Outcome:
    outcome = broken.trial(seed)
    print(f"trial {seed}: {outcome}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
