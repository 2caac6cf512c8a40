"""`python -m training status FOLDER` on a host whose GPUs, if any, <scratch>/driver.json describes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # behind the release, which is what is asked
from tests.training.nvml_driver import described, installed
from training.__main__ import main

if __name__ == "__main__":
    words = sys.argv[3:]
    cards = Path(words[-1]).parents[3] / "driver.json"
    if cards.exists():
        with installed(described(cards)):
            sys.exit(main(words))
    sys.exit(main(words))
