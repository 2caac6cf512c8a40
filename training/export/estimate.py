"""The plan's figures: an export put together without writing anything, and what follows from it."""

from __future__ import annotations

import os
import resource
import shutil
from math import prod
from pathlib import Path

import torch

from ..memory import memory
from ..spec.exportplan import Disk, ExportPlan, Finding, Memory, PlannedFile, Rates, Reading, Seconds, Writing
from ..spec.faults import Reason
from ..spec.job import FORMATS, ExportJob
from . import foresee, place, stream
from .assemble import Assembly
from .blueprint import load_config
from .distcp import Checkpoint
from .flow import ROOM
from .manifest import MODEL_FOLDER
from .numbers import settled
from .outcome import NoRoom
from .parts import BLOCK
from .probe import existing
from .proof import HEADROOM
from .space import COMPANIONS, check_disk

KIB = 1024


class Estimate:
    """One export, assembled. Raises Refused where checkpoint, base and what is asked for don't fit together."""

    def __init__(self, job: ExportJob, seen: foresee.Seen):
        self.asked, self.seen = job, seen
        self.job = settled(job, load_config(job))
        self.assembly = Assembly(self.job)
        self.out = Path(job.out)
        self.checkpoint = Path(job.checkpoint)
        foresee.check_shards(Checkpoint(self.checkpoint / MODEL_FOLDER).files(), self.checkpoint, seen)

    def plan(self) -> ExportPlan:
        writing, disk = self.writing(), self.disk()
        return ExportPlan(
            problems=tuple(self._no_room(disk)),
            notes=tuple(self._notes()),
            reading=self.reading(),
            writing=writing,
            memory=self.memory(),
            disk=disk,
        )

    def reading(self) -> Reading:
        base = 0
        if self.job.adapter == "merged":
            base = sum(prod(s.shape) * s.dtype.itemsize for s in self.assembly.source.tensors.values())
        return Reading(
            checkpoint=self.checkpoint.name,
            step=self.seen.step,
            files=len({*self.seen.files, *self.seen.coming}),
            bytes=self.seen.bytes,
            brought=sum(self.seen.coming.values()),
            base=base,
        )

    def writing(self) -> Writing:
        files = [PlannedFile(name=file.name, size=file.size) for file in self.assembly.files]
        return Writing(
            folder=str(self.out),
            asked=self.asked.dtype,
            dtype=self.job.dtype,
            tensors=sum(len(file.items) for file in self.assembly.files),
            bytes=sum(file.size for file in files),
            done=_left_over(self.out),
            files=tuple(files),
            sizes={name: self._size(name) for name in FORMATS},
        )

    def _size(self, name: str) -> int:
        """Return the bytes of all tensors in a number format; a header is kilobytes, and left out."""
        dtype: torch.dtype = getattr(torch, name)
        tensors = self.assembly.source.tensors
        stored = (item.name for file in self.assembly.files for item in file.items)
        return sum(prod(tensors[n].shape) * stream.target_dtype(tensors[n], dtype).itemsize for n in stored)

    def memory(self) -> Memory:
        """This process has imported and opened all that the two will: both begin with what it took."""
        process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
        available = memory().available
        room = max(0, available - HEADROOM)
        whole = self.assembly.memory <= room
        prove = process + (self._loaded(room) if whole else self._streamed())
        return Memory(stream=process + ROOM, prove=prove, available=available, whole=whole)

    def _loaded(self, room: int) -> int:
        """Return the bytes of the model, and beside them those of the checkpoint's own numbers where they fit."""
        masters = 0 if self.job.dtype == "float32" or self.job.adapter != "none" else self._size("float32")
        return self.assembly.memory + (masters if masters <= room else 0)

    def _streamed(self) -> int:
        """Return the bytes of the largest tensor, of the result and of the checkpoint: some are needed whole."""
        return 2 * max(BLOCK, *(4 * prod(s.shape) for s in self.assembly.source.tensors.values()))

    def disk(self) -> Disk:
        where = existing(self.out.parent)
        same = where.stat().st_dev == self.checkpoint.stat().st_dev
        brought = sum(self.seen.coming.values()) if same else 0
        needed = sum(file.size for file in self.assembly.files) + brought - _left_over(self.out)
        return Disk(free=shutil.disk_usage(where).free, needed=max(0, needed) + COMPANIONS)

    def _no_room(self, disk: Disk) -> list[Finding]:
        try:
            check_disk(disk.needed - COMPANIONS, disk.free, str(self.out.parent))
        except NoRoom as refused:
            return [Finding(field=p.field, why=p.reason, fix=p.fix, reason=Reason.DISK_FULL) for p in refused.problems]
        return []

    def _notes(self) -> list[Finding]:
        stored = {s.dtype for s in self.assembly.source.tensors.values() if s.dtype.is_floating_point}
        if self.job.dtype == "float16" and stored != {torch.float16}:
            why = "values over 65,504 have no place in float16, and are only seen when they are read"
            return [Finding(field="dtype", why=why, fix="bfloat16 has the range of float32, in the same bytes.")]
        return []

    def seconds(self, plan: ExportPlan, speed: Rates, startup: float) -> Seconds:
        """Return how long each phase will take at the probed rates; `startup` is what importing took just now."""
        read, out = plan.reading.bytes + plan.reading.base, plan.writing.bytes
        return Seconds(
            start=startup,
            check=0.0,  # shards are compared while they are read to be written
            stream=read / speed.read + (out - plan.writing.done) / speed.write,
            prove=startup + (2 * read + out) / speed.read,  # as converted, and with its own numbers
        )


def _left_over(out: Path) -> int:
    """Return the bytes of an unfinished export that the next one goes on from."""
    folder = place.partial(out)
    return sum(path.stat().st_size for path in folder.glob("*.safetensors*")) if os.path.isdir(folder) else 0
