"""Folds the samples of streams that have enough of them: a little at a time, so that no line waits for it."""

from __future__ import annotations

import logging
import time

from webapp.runs import folding
from webapp.runs.models import Stream

log = logging.getLogger(__name__)
SECONDS = 0.05  # at one go


class Folds:
    """The streams that are due, in the order in which they became so."""

    def __init__(self) -> None:
        self._due: dict[int, Stream] = {}

    def stored(self, stream: Stream, before: int) -> None:
        """Note that a stream has come on from line `before`."""
        if folding.is_due(stream, before):
            self._due.setdefault(stream.pk, stream)

    def some(self) -> None:
        """Fold as much as fits into SECONDS, at least one stream's; one that fails is due again with its next block."""
        until = time.monotonic() + SECONDS
        while self._due:
            stream = self._due.pop(next(iter(self._due)))
            try:
                folding.fold(stream)
            except Exception:  # rows of their own are as good, only more
                log.exception("%s: its samples are not folded now", stream)
            if time.monotonic() > until:
                return
