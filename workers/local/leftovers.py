"""End detached training on the loopback hosts: it outlives SSH connections by design, so it must be told."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path


async def stop_training(scratches: Iterable[Path]) -> None:
    """End every job below these scratch folders and return when none is left."""
    await asyncio.gather(*(_stop(scratch) for scratch in scratches if scratch.is_dir()))


async def _stop(scratch: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "training", "stop-all", str(scratch), start_new_session=True
    )
    if code := await process.wait():
        print(f"shardboard: training below {scratch} may still run (status {code})", file=sys.stderr)
