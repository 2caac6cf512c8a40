"""Where an export's tensors come from: the checkpoint alone, an adapter alone, or an adapter merged into its base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import torch

from ..adapters.names import CONFIG
from ..spec.job import ExportJob
from . import adapted, vocabulary
from .base import Base
from .blueprint import Blueprint, check
from .distcp import Checkpoint, Stored
from .manifest import MODEL_FOLDER
from .merged import Merged
from .outcome import refuse
from .parts import Part
from .shards.checked import Checked


class Source(Protocol):
    """Tensors by the names that they are exported under."""

    @property
    def tensors(self) -> Mapping[str, Stored]: ...

    def parts(self, name: str) -> Iterator[Part]:
        """Yield a tensor's numbers as consecutive parts of a bounded size."""

    def blocks(self, name: str) -> Iterator[torch.Tensor]:
        """Yield a tensor as consecutive blocks of rows."""


def open_source(job: ExportJob, plan: Blueprint, files: Mapping[str, Checked] | None = None) -> Source:
    """Return the tensors of `job`; raise Refused where checkpoint, base and what is asked for don't fit together.

    `files`: the checkpoint's, whose hashes are taken as they are read.
    """
    folder = Path(job.checkpoint)
    _check_kind(job, (folder / CONFIG).is_file())
    checkpoint = Checkpoint(folder / MODEL_FOLDER, files)
    if job.adapter == "none":
        vocabulary.cut(plan, checkpoint)
        check(plan, checkpoint.tensors)
        return checkpoint
    adapter = adapted.read(folder, checkpoint)
    adapted.check(plan, adapter)
    return checkpoint if job.adapter == "adapter" else Merged(adapter, Base(job), plan)


def names(job: ExportJob, plan: Blueprint, source: Source) -> list[str]:
    """Return the names that the export stores, in the order in which they come in the shards."""
    if job.adapter == "adapter":
        return list(source.tensors)
    return source.in_order(plan.kept()) if isinstance(source, Checkpoint) else plan.kept()


def _check_kind(job: ExportJob, holds_adapter: bool) -> None:
    if holds_adapter and job.adapter == "none":
        raise refuse("adapter", "the checkpoint holds an adapter, no whole model", "Choose merged or adapter.")
    if not holds_adapter and job.adapter != "none":
        raise refuse("adapter", "the checkpoint holds a whole model, no adapter", "Leave adapter out.")
