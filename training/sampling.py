"""The thread that writes a sample every so often, whatever training does.

A thread of its own, since a look at a dead disk or GPU can hang; the end of the job must not wait for it. It goes on
over whatever it meets: what could not be looked at, and lines that a full disk had to wait for, are told as warnings.
"""

from __future__ import annotations

import threading
import time

from .guarded import guarded
from .journal import Journal
from .rates import chosen_interface
from .sample import Sampler
from .spec.events import Kind
from .spec.job import Job

CLOSE_SECONDS = 5.0


class Sampling:
    """Runs from the moment it is made until close(). `environment`: the ranks', which names their interface."""

    def __init__(self, journal: Journal, job: Job, root: int, environment: dict[str, str]):
        self.sampler = Sampler(job.disk, root, chosen_interface(environment))
        self._journal, self._every = journal, job.sample_seconds
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._held_since: float | None = None
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
            guarded(self._sample, None)
            # the next whole beat from the first one: no drift, and no rush after a pause
            due += self._every * (1 + max(0, int((time.monotonic() - due) / self._every)))
            self._closed.wait(max(0.0, due - time.monotonic()))

    def _sample(self) -> None:
        figures = self.sampler.take()
        with self._lock:
            if not self._closed.is_set():
                self._journal.emit(Kind.SAMPLE, **figures)
                self._tell_problems()
                self._tell_held()

    def _tell_problems(self) -> None:
        for part, why in self.sampler.problems.items():
            if part not in self._told:
                self._told.add(part)
                self._journal.emit(Kind.WARNING, text=f"samples are without {part}: {why}")

    def _tell_held(self) -> None:
        """Say for how long the disk took no lines, once it has taken those that waited."""
        now = time.monotonic()
        if self._journal.held:
            self._held_since = self._held_since or now
        elif self._held_since is not None:
            text = f"the disk took no samples for {now - self._held_since:.0f} s; those of that time came late"
            self._held_since = None
            self._journal.emit(Kind.WARNING, text=text)
