"""End detached training on the loopback hosts: it outlives SSH connections by design, so it must be told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from .say import say


async def stop_training(scratches: Iterable[Path]) -> None:
    """End every job below these scratch folders and return when none is left."""
    await asyncio.gather(*(_stop(scratch) for scratch in scratches if scratch.is_dir()))


async def _stop(scratch: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "training",
        "stop-all",
        str(scratch),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, _ = await process.communicate()
    if process.returncode:
        print(f"shardboard: training below {scratch} may still run: {output.decode()}", file=sys.stderr)
        return
    for folder in json.loads(output)["ended"]:
        say(f"ended the training in {folder}")
