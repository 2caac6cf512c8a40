"""Everything of the result before its proof: plan it from the config and the checkpoint, then write it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch

from ..adapters.names import WEIGHTS
from ..journal import Journal
from ..progress import Meter
from ..spec.events import Kind
from ..spec.job import ExportJob
from . import companions, layout, stream, vocabulary
from .blueprint import blueprint, load_config
from .distcp import Checkpoint
from .opened import Opened
from .place import Work, Written
from .record import Durable
from .resume import Kept, verified
from .shards.checked import Checked
from .source import names, open_source


class Assembly:
    """What will be written where. Made without writing anything; raises Refused where it doesn't fit together.

    `opened`: the checkpoint, of which no shard need have been compared yet; None where nothing will be written.
    """

    def __init__(self, job: ExportJob, opened: Opened | None = None):
        self.job, self.opened = job, opened
        self.tokenizer = companions.load_tokenizer(job)
        self.config = vocabulary.settled(job, load_config(job), len(self.tokenizer))
        self.dtype: torch.dtype = getattr(torch, job.dtype)
        self.plan = blueprint(self.config, trust_remote_code=job.trust_remote_code)
        self.source = open_source(job, self.plan, opened.files if opened else None)
        stored = names(job, self.plan, self.source)
        items = [stream.item(name, self.source.tensors[name], self.dtype) for name in stored]
        self.files = (
            [layout.File(WEIGHTS, tuple(items))]  # PEFT reads one file
            if job.adapter == "adapter"
            else layout.plan(items, job.max_shard_bytes)
        )

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def memory(self) -> int:
        """Bytes that the proof's model takes: an adapter is compared in fp32, on its whole base."""
        if self.job.adapter == "none":
            return self.bytes
        return 4 * sum(prod(self.plan.shapes[name]) for name in self.plan.kept())

    def write(self, work: Work, durable: Mapping[str, Durable], journal: Journal) -> list[Written]:
        """Write companions, then what is not `durable` of the weights; return the weight files."""
        assert self.opened is not None, "a plan alone is not written"
        if isinstance(self.source, Checkpoint) and self.job.adapter == "none":
            vocabulary.tell(self.plan, self.source, len(self.tokenizer), journal)
        companions.write(self.job, self.config, self.tokenizer, work.folder)
        if len(self.files) > 1:
            (work.folder / layout.INDEX).write_text(layout.index(self.files), "utf-8")
        kept = self._kept(self.opened, work, durable, journal)
        stream.check_ties(self.plan, self.source)
        meter = Meter(journal, "stream", self.bytes, done=sum(part.size for part in kept.values()))
        written = stream.write(self.files, self.source, work, self.dtype, kept, meter)
        self.opened.files.check(lambda count: meter.add(0))
        meter.tell()
        return written

    def _kept(self, opened: Opened, work: Work, durable: Mapping[str, Durable], journal: Journal) -> dict[str, Kept]:
        """Return what a killed export left that is right; the shards' bytes that it was made of are hashed again."""
        if not durable:
            return {}
        again = self._begins(opened, durable)
        total = sum(one.size for one in durable.values()) + sum(end - file.at for file, end in again)
        before = opened.checked
        meter = Meter(journal, "check", before + total, done=before)
        kept = verified(self.files, durable, work.folder, meter.add)
        for file, end in again:
            file.hash_to(end, meter.add)
        meter.tell()
        size = sum(part.size for part in kept.values())
        text = f"goes on after an export that was killed: {size:,} of {self.bytes:,} bytes are not written again"
        journal.emit(Kind.WARNING, text=text, kept=size)
        return kept

    def _begins(self, opened: Opened, durable: Mapping[str, Durable]) -> list[tuple[Checked, int]]:
        """Return to where in each shard only what is durable was made of it."""
        if not isinstance(self.source, Checkpoint):
            return []
        due = [i.name for f in self.files if f.name not in durable or durable[f.name].size < f.size for i in f.items]
        files, begins = opened.files, self.source.begins(due)
        found = [(file, begins.get(name, file.facts.size)) for name, file in files.items()]
        return [(file, end) for file, end in found if end > file.at]
