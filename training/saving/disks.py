"""Which nodes see the same disk: found out by looking, since no setting would stay true."""

from __future__ import annotations

import uuid
from pathlib import Path

from ..ranks import Ranks


def shared_with_main(root: Path, ranks: Ranks) -> bool:
    """Tell whether this node sees the first node's folder `root`, which is made if need be. All ranks must call."""
    name = ranks.gather(f".seen-{uuid.uuid4().hex}")[0]
    if ranks.is_main:
        root.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    ranks.gather(None)
    seen = (root / name).exists()
    ranks.gather(None)
    if ranks.is_main:
        (root / name).unlink()
    return seen


def readers(root: Path, ranks: Ranks) -> list[int]:
    """Return the ranks that see `root` as this one does, this one among them. All ranks must call."""
    shared = ranks.gather(shared_with_main(root, ranks))
    return [rank for rank, sees in enumerate(shared) if sees] if shared[ranks.rank] else ranks.neighbours
