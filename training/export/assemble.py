"""Everything of the result before its proof: plan it from the config and the checkpoint, then write it."""

from __future__ import annotations

from math import prod
from pathlib import Path

import torch

from ..adapters.names import WEIGHTS
from ..journal import Journal
from ..spec.job import ExportJob
from . import companions, layout, stream
from .blueprint import blueprint, load_config
from .meter import Meter
from .place import Written
from .source import names, open_source


class Assembly:
    """What will be written where. Made without writing anything; raises Refused where it doesn't fit together."""

    def __init__(self, job: ExportJob):
        self.job = job
        self.config = load_config(job)
        self.tokenizer = companions.load_tokenizer(job)
        self.dtype: torch.dtype = getattr(torch, job.dtype)
        self.plan = blueprint(self.config, trust_remote_code=job.trust_remote_code)
        self.source = open_source(job, self.plan)
        stored = names(job, self.plan, self.source)
        items = [stream.item(name, self.source.tensors[name], self.dtype) for name in stored]
        self.files = (
            [layout.File(WEIGHTS, tuple(items))]  # PEFT reads one file
            if job.adapter == "adapter"
            else layout.plan(items, job.max_shard_bytes)
        )

    @property
    def memory(self) -> int:
        """Bytes that the proof's model takes: an adapter is compared in fp32, on its whole base."""
        if self.job.adapter == "none":
            return sum(file.size for file in self.files)
        return 4 * sum(prod(self.plan.shapes[name]) for name in self.plan.kept())

    def write(self, folder: Path, journal: Journal) -> list[Written]:
        """Write companions, then weights; return the weight files. One stored piece is in memory at a time."""
        companions.write(self.job, self.config, self.tokenizer, folder)
        stream.check_ties(self.plan, self.source)
        meter = Meter(journal, "stream", sum(file.size for file in self.files))
        written = []
        for file in self.files:
            written.append(stream.write(file, self.source, folder, self.dtype, meter.add))
            meter.tell()
        if len(self.files) > 1:
            (folder / layout.INDEX).write_text(layout.index(self.files), "utf-8")
        return written
