"""End detached training on the loopback hosts: it outlives SSH connections by design, so it must be told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from .say import say

GRACE_SECONDS = 30  # for the step in hand and its save; the sample models need a third of it


async def stop_training(scratches: Iterable[Path]) -> None:
    """End every job below these scratch folders, with a save where there is time, and return when none is left.

    All hosts are asked at once: ranks that train together save together.
    """
    await asyncio.gather(*(_stop(scratch) for scratch in scratches if scratch.is_dir()))


async def _stop(scratch: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "training",
        "stop-all",
        str(scratch),
        "--grace",
        str(GRACE_SECONDS),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, _ = await process.communicate()
    if process.returncode:
        print(f"shardboard: training below {scratch} may still run: {output.decode()}", file=sys.stderr)
        return
    for folder in json.loads(output)["ended"]:
        say(f"ended the training in {folder}")
