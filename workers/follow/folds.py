"""Folds the lines of streams that have enough of them: a little at a time, so that no line waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from itertools import islice

from django.db import transaction

from webapp.runs import folding, serieskeys
from webapp.runs.models import Stream

log = logging.getLogger(__name__)
SECONDS = 0.05  # at one go
MOST = 8 * folding.TOGETHER  # streams of one transaction


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
        """Fold as much as fits into SECONDS; what fails is due again with its next block."""
        until = time.monotonic() + SECONDS
        while self._due and time.monotonic() < until:
            try:
                with transaction.atomic():  # one for some: with each of its own, waiting for the disk was most of it
                    self._fold_first(until)
            except Exception:
                log.exception("some streams' lines are not folded now")

    def _fold_first(self, until: float) -> None:
        """Fold those that have been due for longest, as many as there is time for.

        In the order in which whoever locks several runs takes them: the locks of all are held until the end.
        """
        due = sorted(islice(self._due, MOST), key=lambda pk: self._due[pk].attempt.run_id)
        for at in range(0, len(due), folding.TOGETHER):
            _fold([self._due.pop(pk) for pk in due[at : at + folding.TOGETHER]])
            if time.monotonic() > until:
                return


def _fold(streams: Sequence[Stream]) -> None:
    """Fold streams, by rising run, together; where that fails each by itself."""
    try:
        folding.fold_all(streams)
        return
    except Exception:  # noqa: BLE001  told below, where it is known whose lines they are
        serieskeys.forget()
    for stream in streams:
        try:
            folding.fold(stream)
        except Exception:  # rows of their own are as good, only more
            log.exception("%s: its lines are not folded now", stream)
