"""Folds the lines of streams that have enough of them: a little at a time, so that no line waits for it."""

from __future__ import annotations

import logging
import time
from itertools import islice

from django.db import transaction

from webapp.runs import folding
from webapp.runs.models import Stream

log = logging.getLogger(__name__)
SECONDS = 0.05  # at one go
TOGETHER = 16  # streams


class Folds:
    """The streams that are due, in the order in which they became so."""

    def __init__(self) -> None:
        self._due: dict[int, Stream] = {}

    @property
    def due(self) -> int:
        """How many streams are due."""
        return len(self._due)

    def stored(self, stream: Stream, before: int) -> None:
        """Note that a stream has come on from line `before`."""
        if folding.is_due(stream, before):
            self._due.setdefault(stream.pk, stream)

    def some(self) -> None:
        """Fold as much as fits into SECONDS, at least one stream's; one that fails is due again with its next block."""
        until = time.monotonic() + SECONDS
        while self._due:
            try:
                with transaction.atomic():  # one for some: with each of its own, waiting for the disk was most of it
                    self._fold(until)
            except Exception:
                log.exception("some streams' lines are not folded now")
            if time.monotonic() > until:
                return

    def _fold(self, until: float) -> None:
        """Fold a few streams, in the order in which whoever locks several runs takes them."""
        for stream in sorted(islice(self._due.values(), TOGETHER), key=lambda stream: stream.attempt.run_id):
            del self._due[stream.pk]
            try:
                folding.fold(stream)
            except Exception:  # rows of their own are as good, only more
                log.exception("%s: its lines are not folded now", stream)
            if time.monotonic() > until:
                return
