"""Room on the result's file system, asked for before anything is written."""

from __future__ import annotations

from ..spec.lint import Problem
from .outcome import NoRoom

COMPANIONS = 64 << 20  # config, tokenizer and proof together; the largest tokenizers are about 35 MB


def check_disk(needed: int, free: int, where: str) -> None:
    """Raise NoRoom where `needed` bytes of weights and their companions do not fit into `free` bytes."""
    total = needed + COMPANIONS
    if total > free:
        raise NoRoom(
            [Problem("out", f"{total:,} bytes are needed in {where} and {free:,} are free", "Free space there.")]
        )
