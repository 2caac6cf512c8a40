"""What is known at the end of a delivery, and what is needed on the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..journal import Journal
from ..progress import Meter
from ..spec.events import Kind


@dataclass
class Delivered:
    """Data of the `delivered` event. `bytes_skipped`: were there already and are the same, by their hashes."""

    where: str
    url: str = ""
    files: list[dict[str, Any]] = field(default_factory=list)
    bytes_sent: int = 0
    bytes_skipped: int = 0
    already: bool = False
    replaced: bool = False
    revision: str = ""
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Teller:
    """Says how far a delivery is."""

    journal: Journal

    def meter(self, phase: str, total: int) -> Meter:
        """Begin a phase of `total` bytes: check, send or verify."""
        return Meter(self.journal, phase, total)

    def warn(self, text: str) -> None:
        self.journal.emit(Kind.WARNING, text=text)
