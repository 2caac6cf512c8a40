"""Make an interpreter in the background, once: python3 -m training provision start|status|stop|run FOLDER

FOLDER is the virtual environment that is to be (spec.venvfolder.VenvFolder); what to do lies in FOLDER.making. `start`,
`status` and `stop` print one JSON object. Started again, what is whole is left alone, and what was killed in the middle
is made anew with what had been downloaded.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import PurePosixPath

from ..spec.venvfolder import VenvFolder
from . import background, steps


def main(argv: list[str]) -> int:
    """Return 0; 1 with the reason where the folder can't be used; of `run` the status of the step that failed."""
    parser = argparse.ArgumentParser(prog="python -m training provision", description="Make an interpreter.")
    parser.add_argument("act", choices=["start", "status", "stop", "run"])
    parser.add_argument("folder", type=PurePosixPath, help="the virtual environment, absolute")
    parser.add_argument("--lock", type=int, default=-1, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    folder = VenvFolder(options.folder)
    try:
        if options.act == "run":
            return steps.run(folder, options.lock)
        print(
            json.dumps(
                {"start": background.start, "status": background.status, "stop": background.stop}[options.act](folder)
            )
        )
    except (OSError, ValueError) as error:
        print(f"provision: {error}", file=sys.stderr)
        return 1
    return 0
