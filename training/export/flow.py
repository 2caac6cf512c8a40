"""The threads of an export: parts are loaded and converted a few at a time, hashed and written in order beside it.

    loaders (2) -> hash of what was read (2: each file's own order)
                -> hash of what is written (1) and the writing itself (1), both in the result's order
                -> flushing to the disk (1), which never keeps the others waiting

Hashing, copying and system calls let go of Python's lock, so that the cores are busy. What is in memory is SLOTS
parts, each as it was read and as it will be written.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import torch

from .output import Output
from .parts import BLOCK, Loaded, Raw
from .place import Written
from .record import Ledger

LOADERS = 2
SLOTS = 8
AHEAD = 4  # parts that are loaded before they are needed
ROOM = SLOTS * 3 * BLOCK  # bytes at most: a part is written in up to twice the bytes that it was read in
NOTE_EVERY = 1 << 27  # bytes written between two notes of what is on the disk
PATIENCE = 0.5  # seconds between two looks for a request to stop


@dataclass
class Slot:
    """Memory for one part: as it is read, and as it is written where that is something else."""

    raw: torch.Tensor = field(default_factory=lambda: torch.empty(BLOCK, dtype=torch.uint8))
    converted: torch.Tensor | None = None

    def room(self, count: int) -> torch.Tensor:
        """Return memory for `count` converted bytes."""
        if self.converted is None or self.converted.nbytes < count:
            self.converted = torch.empty(max(count, BLOCK // 2), dtype=torch.uint8)
        return self.converted[:count]


@dataclass(frozen=True)
class Step:
    """What to do next for a file: bytes that `load` puts into a slot, or its end where there is none."""

    output: Output
    load: Callable[[Slot], Loaded] | None = None


class Flow:
    """Runs the steps of all files. `on_bytes` hears of what was written, and of 0 now and then while nothing is."""

    def __init__(self, ledger: Ledger, on_bytes: Callable[[int], None]):
        self.ledger, self.on_bytes = ledger, on_bytes
        self.slots: SimpleQueue[Slot] = SimpleQueue()
        for _ in range(SLOTS):
            self.slots.put(Slot())
        one_thread = {"initializer": torch.set_num_threads, "initargs": (1,)}  # or each would start its own team
        self.loaders = ThreadPoolExecutor(LOADERS, "load", **one_thread)
        self.checkers = [ThreadPoolExecutor(1, f"check-{n}") for n in range(2)]
        self.hasher, self.writer = ThreadPoolExecutor(1, "hash"), ThreadPoolExecutor(1, "write")
        self.flusher = ThreadPoolExecutor(1, "flush")
        self.pending: deque[tuple[Future[Any], int]] = deque()
        self.noted: Future[Any] | None = None
        self.unnoted = 0
        self.outputs: list[Output] = []

    def run(self, steps: Iterable[Step]) -> list[Written]:
        """Do all steps; return the files. Ends at the first error, with no thread left at work."""
        try:
            return self._run(steps)
        finally:
            self._end()

    def _run(self, steps: Iterable[Step]) -> list[Written]:
        waiting: deque[tuple[Step, Future[tuple[Slot, Loaded]] | None]] = deque()
        ends: list[Future[Written]] = []
        for step in steps:
            if step.output not in self.outputs[-1:]:
                self.outputs.append(step.output)
            load = None if step.load is None else self.loaders.submit(self._load, step.load)
            waiting.append((step, load))
            if len(waiting) > AHEAD:
                ends += self._pass_on(*waiting.popleft())
        while waiting:
            ends += self._pass_on(*waiting.popleft())
        self._reap(everything=True)
        return [self._result(end) for end in ends]

    def _load(self, load: Callable[[Slot], Loaded]) -> tuple[Slot, Loaded]:
        slot = self.slots.get()
        try:
            return slot, load(slot)
        except BaseException:
            self.slots.put(slot)
            raise

    def _pass_on(self, step: Step, load: Future[tuple[Slot, Loaded]] | None) -> list[Future[Written]]:
        """Hand a loaded part to hashing and writing; return the file's end where it is one."""
        if load is None:
            return [self.flusher.submit(self._finish, step.output, *self._at(step.output))]
        slot, loaded = self._result(load)
        view = memoryview(loaded.numbers.view(torch.uint8).numpy())
        futures = [self._checker(raw).submit(raw.feed) for raw in loaded.raws]
        futures.append(self.hasher.submit(step.output.hash, view))
        futures.append(self.writer.submit(step.output.write, view))
        _when_all_are_done(futures, lambda: self.slots.put(slot))
        self.pending += [(future, 0) for future in futures[:-1]] + [(futures[-1], len(view))]
        self._note(step.output, len(view))
        self._reap()
        return []

    def _checker(self, raw: Raw) -> ThreadPoolExecutor:
        return self.checkers[hash(raw.file.name) % len(self.checkers)]

    def _at(self, output: Output) -> tuple[Future[Any], Future[Any]]:
        """Return what will be hashed, and that it will be written, when all that was handed on so far is."""
        return self.hasher.submit(output.so_far), self.writer.submit(lambda: None)

    def _note(self, output: Output, count: int) -> None:
        self.unnoted += count
        if self.unnoted >= NOTE_EVERY and (self.noted is None or self.noted.done()):
            self.unnoted = 0
            self.noted = self.flusher.submit(self._flush, output, *self._at(output))
            self.pending.append((self.noted, 0))

    def _flush(self, output: Output, hashed: Future[Any], written: Future[Any]) -> None:
        written.result()
        output.flush(hashed.result(), self.ledger)

    def _finish(self, output: Output, hashed: Future[Any], written: Future[Any]) -> Written:
        written.result()
        return output.finish(hashed.result(), self.ledger)

    def _reap(self, *, everything: bool = False) -> None:
        """Count what is done; raise what went wrong."""
        while self.pending and (everything or self.pending[0][0].done()):
            future, count = self.pending.popleft()
            self._result(future)
            self.on_bytes(count)

    def _result(self, future: Future[Any]) -> Any:
        while not wait([future], PATIENCE).done:
            self.on_bytes(0)
        return future.result()

    def _end(self) -> None:
        # loaders first: one may wait for a slot, which the others let go of
        for pool in (self.loaders, *self.checkers, self.hasher, self.writer, self.flusher):
            pool.shutdown(cancel_futures=True)
        for output in self.outputs:
            output.close()


def _when_all_are_done(futures: list[Future[Any]], act: Callable[[], None]) -> None:
    left, lock = [len(futures)], threading.Lock()

    def one(future: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            act()

    for future in futures:
        future.add_done_callback(one)
