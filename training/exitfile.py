"""exit.json: how a job ended. Whoever sees it may trust that nothing of the job runs any more."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .journal import Journal
from .spec.events import Kind
from .spec.faults import SENTENCES, Reason
from .spec.folder import JobFolder

# Kept free from the start: a job that dies of a full disk must still be able to say so.
RESERVED_BYTES = 1 << 16
TEXT_LENGTH = 2000


@dataclass(frozen=True)
class Ending:
    """Why and how: `code` or `signal` of the job's own process, where it had one; `rank` that failed first, if known.

    `evidence` stands in the exit file alone: what shows it (see evidence.collect), not needed to go on.
    """

    reason: Reason
    text: str = ""
    code: int | None = None
    signal: int | None = None
    rank: int | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        text = (self.text or SENTENCES[self.reason])[:TEXT_LENGTH]
        found = {"reason": str(self.reason), "text": text, "code": self.code, "signal": self.signal}
        return found if self.rank is None else found | {"rank": self.rank}

    def whole(self) -> dict[str, Any]:
        """Return the body with its evidence."""
        return self.body() | ({"evidence": self.evidence} if self.evidence else {})


class ExitFile:
    """The `exit.json` of one job folder."""

    def __init__(self, folder: JobFolder):
        self.path = Path(folder.exit)
        self._work = self.path.with_name(f".{self.path.name}")

    def reserve(self) -> None:
        """Take the space that writing will need; do without where the file system has no such thing."""
        with suppress(OSError), self._work.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVED_BYTES)

    def write(self, ending: Ending) -> None:
        """Write the file: whole, or not at all."""
        at = {"at": time.time()}
        body = json.dumps(ending.whole() | at).encode() + b"\n"
        if len(body) > RESERVED_BYTES:  # a full disk has room for so much and no more
            body = json.dumps(ending.body() | at).encode() + b"\n"
        file = os.open(self._work, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(file, body)
            os.ftruncate(file, len(body))
            os.fsync(file)
        finally:
            os.close(file)
        self._work.replace(self.path)

    def read(self) -> dict[str, Any] | None:
        """Return what it says; None while the job hasn't ended."""
        try:
            body: dict[str, Any] = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        return body


def start_number(folder: JobFolder) -> int:
    """Return which start of the job this is, counted from 1."""
    try:
        return int(Path(folder.start).read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return 1


def conclude(folder: JobFolder, ending: Ending, journal: Journal | None = None) -> None:
    """Write the last line of samples.jsonl, then the exit file: who sees that one finds all the rest in place.

    `journal`: of that file, with the lines that wait in it.
    """
    number = start_number(folder)
    (journal or Journal(Path(folder.samples))).emit(
        Kind.EXIT, **ending.body(), **({"start": number} if number > 1 else {})
    )
    ExitFile(folder).write(ending)
