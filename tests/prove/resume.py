"""Resume equality, over and over: python -m tests.prove.resume [--trials 10] [--seed 0]

A run of two ranks is killed with signal 9, in turn in a random step and in the middle of a save, and goes on
from its newest complete checkpoint. Every figure of every later line and the rows of every later batch have to
be the unbroken run's, to the last digit. Half of the trials save asynchronously.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .trials import Outcome, Trials


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.resume")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial; each has the next")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-resume-") as folder:
        trials = Trials(Path(folder))
        good = 0
        for seed in range(options.seed, options.seed + options.trials):
            outcome = trials.trial(seed)
            good += not outcome.differs
            print(told(seed, outcome), flush=True)
    holds = good == options.trials
    print(
        f"resumed runs equal to the unbroken one: {good}; goal {options.trials}: {'holds' if holds else 'falls short'}"
    )
    return 0 if holds else 1


def told(seed: int, outcome: Outcome) -> str:
    how = "asynchronous" if outcome.asynchronous else "synchronous"
    skipped = f", skipping {', '.join(outcome.skipped)}" if outcome.skipped else ""
    equal = "; ".join(outcome.differs) or "exact"
    return f"trial {seed}: killed {outcome.kill} ({how} saves), went on from {outcome.went_on_from}{skipped}: {equal}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
