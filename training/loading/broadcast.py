"""Rank 0 reads the files and sends each rank its own rows, piece by piece; no rank ever holds a whole tensor.

Over gloo also where there are GPUs: the bytes come from a disk and go to each rank once, in the number format of the
files, while a broadcast of whole fp32 tensors to all (accelerate's way) sends and holds each many times over.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import torch.distributed as dist

from ..ranks import Ranks
from .reader import Files, Target, new_buffer, read_rows, spans
from .shards import Wanted
from .stored import Stored

IN_FLIGHT = 4  # pieces read ahead while others are on their way


class FromHead:
    """The source where only rank 0 can read the files. Make it on every rank at once."""

    def __init__(self, placed: Mapping[str, Stored], ranks: Ranks):
        self.placed = placed
        self._ranks = ranks
        self._group: Any = dist.new_group(backend="gloo")

    def read(self, wanted: list[Wanted]) -> None:
        rows = self._ranks.gather([one.rows for one in wanted])
        if self._ranks.is_main:
            self._send_all(wanted, rows)
        else:
            self._receive_all(wanted)

    def _send_all(self, wanted: list[Wanted], rows: list[list[range]]) -> None:
        files, buffer = Files(), new_buffer()
        slots = [Slot(files, self._group) for _ in range(IN_FLIGHT)]
        following = cycle(slots)
        for number, one in enumerate(wanted):
            for rank in range(1, self._ranks.world_size):
                for start, stop in spans(one.stored, rows[rank][number]):
                    next(following).send(one.stored, start, stop, rank)
            read_rows(files, one.stored, one.rows, one.into, buffer)
        for slot in slots:
            slot.wait()
        files.close()

    def _receive_all(self, wanted: list[Wanted]) -> None:
        buffer = new_buffer()
        for one in wanted:
            target = Target(one.stored, one.into)
            for start, stop in spans(one.stored, one.rows):
                piece = buffer[: stop - start]
                dist.recv(piece, src=0, group=self._group)
                target.append(piece)
            target.check_full()


class Slot:
    """One piece on its way: read, sent, and not overwritten before it has arrived."""

    def __init__(self, files: Files, group: Any):
        self._files, self._group, self._buffer = files, group, new_buffer()
        self._sending: Any = None

    def send(self, stored: Stored, start: int, stop: int, rank: int) -> None:
        self.wait()
        piece = self._buffer[: stop - start]
        self._files.read(stored, start, piece)
        self._sending = dist.isend(piece, dst=rank, group=self._group)

    def wait(self) -> None:
        if self._sending is not None:
            self._sending.wait()
            self._sending = None
