"""A rank without progress, as it tells of itself in a file while that lasts; and which of several is to blame."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..spec.folder import JobFolder

STACK_LENGTH = 3000  # characters of a rank's stacks that go with the end
STACKS = 16  # ranks of which they do


@dataclass(frozen=True)
class Hanging:
    """`since`: its last sign of progress, seconds since the epoch. `ends_at`: when the run ends for it; 0: never.

    `waits`: it waits in a collective, so that another one is to blame. `where`: its innermost frame.
    """

    rank: int
    part: str
    step: int
    since: float
    ends_at: float = 0.0
    waits: bool = False
    where: str = ""

    @property
    def sentence(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        return f"rank {self.rank} makes no progress in {self.part.replace('_', ' ')}, step {self.step}, since {since}"


def tell(folder: JobFolder, hanging: Hanging) -> None:
    """Write the file. Raises OSError."""
    path = Path(folder.hang(hanging.rank))
    work = path.with_name(f".{path.name}")
    work.write_text(json.dumps(asdict(hanging)))
    work.replace(path)


def untell(folder: JobFolder, rank: int) -> None:
    """It goes on."""
    with suppress(OSError):
        Path(folder.hang(rank)).unlink(missing_ok=True)


def told(folder: JobFolder) -> list[Hanging]:
    """Return the ranks of this node that make no progress now, the lowest first."""
    found = []
    for path in Path(folder.path).glob("hang-rank*.json"):
        with suppress(OSError, ValueError, TypeError):
            found.append(Hanging(**json.loads(path.read_text("utf-8"))))
    return sorted(found, key=lambda hanging: hanging.rank)


def over(found: Sequence[Hanging], now: float) -> bool:
    """PURE: tell whether it has lasted too long for one of them."""
    return any(0 < hanging.ends_at <= now for hanging in found)


def blamed(found: Sequence[Hanging]) -> Hanging | None:
    """PURE: the one that waits for nobody, else the one that was silent first."""
    return min(found, key=lambda hanging: (hanging.waits, hanging.since, hanging.rank), default=None)


def sentence(found: Sequence[Hanging]) -> str:
    """PURE: say who hangs, and who waits for whom."""
    first = blamed(found)
    if first is None:
        return ""
    others = [str(hanging.rank) for hanging in found if hanging.rank != first.rank]
    at = f", at {first.where}" if first.where else ""
    rest = f"; on this node so do ranks {', '.join(others)}" if others else ""
    waits = "; it waits in a collective for a rank elsewhere" if first.waits else ""
    return first.sentence + at + waits + rest


def stacks(folder: JobFolder) -> dict[str, str]:
    """Return the newest of what each rank of this node wrote of its threads, by rank; cut to its end."""
    found = {}
    for path in sorted(Path(folder.path).glob("stacks-rank*.txt"))[:STACKS]:
        with suppress(OSError):
            if text := path.read_text("utf-8", "replace")[-STACK_LENGTH:]:
                found[path.stem.removeprefix("stacks-rank")] = text
    return found
