"""The thread that writes a sample every so often, whatever training does.

A thread of its own, since a look at a dead disk or GPU can hang; the end of the job must not wait for it.
"""

from __future__ import annotations

import threading
import time

from .journal import Journal
from .sample import Sampler
from .spec.events import Kind
from .spec.job import Job

CLOSE_SECONDS = 5.0


class Sampling:
    """Runs from the moment it is made until close()."""

    def __init__(self, journal: Journal, job: Job, root: int):
        self.sampler = Sampler(job.disk, root)
        self._journal, self._every = journal, job.sample_seconds
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; after this returns no sample is written any more, even by a look that still hangs."""
        self._closed.set()
        self._thread.join(CLOSE_SECONDS)
        with self._lock:
            return

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed.is_set():
            figures = self.sampler.take()
            with self._lock:
                if not self._closed.is_set():
                    self._journal.emit(Kind.SAMPLE, **figures)
            # the next whole beat from the first one: no drift, and no rush after a pause
            due += self._every * (1 + max(0, int((time.monotonic() - due) / self._every)))
            self._closed.wait(max(0.0, due - time.monotonic()))
