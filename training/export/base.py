"""The base model's own tensors, read part by part out of its safetensors files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from transformers.utils import cached_file

from ..spec.job import ExportJob
from .distcp import Stored
from .layout import INDEX, SINGLE
from .outcome import refuse
from .tensorfile import TensorFile, Unreadable

WHOLE = "Name the unquantised model that this run was trained from, with its weights in safetensors files."


class Base:
    """`tensors`: shape and number format by the names in the files. No number is read before it is asked for."""

    def __init__(self, job: ExportJob):
        places = _places(job)
        opened = {path: _open(path) for path in set(places.values())}
        self.files = {name: opened[path] for name, path in places.items() if name in opened[path].tensors}
        found = {name: file.tensors[name] for name, file in self.files.items()}
        self.tensors = {name: Stored(entry.shape, entry.dtype, ()) for name, entry in found.items()}

    def numbers(self, name: str, start: int, count: int, buffer: torch.Tensor | None = None) -> torch.Tensor:
        """Return `count` numbers of a tensor from index `start` on, in `buffer` where they have room in it."""
        dtype = self.tensors[name].dtype
        if buffer is None or buffer.nbytes < count * dtype.itemsize:
            buffer = torch.empty(count * dtype.itemsize, dtype=torch.uint8)
        return self.files[name].read(name, start, buffer[: count * dtype.itemsize].view(dtype))


def _open(path: Path) -> TensorFile:
    try:
        return TensorFile(path)
    except Unreadable as error:
        raise refuse("model", str(error), WHOLE) from error


def _places(job: ExportJob) -> Mapping[str, Path]:
    """Return the file of each tensor. Raises Refused."""
    index = _file(job, INDEX)
    if index:
        weights: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        files = {name: _file(job, name) for name in sorted(set(weights.values()))}
        if missing := [name for name, path in files.items() if path is None]:
            raise refuse("model", f"{job.model} lacks {missing[0]}, which its index names", WHOLE)
        return {name: path for name, file in weights.items() if (path := files[file])}
    single = _file(job, SINGLE)
    if single is None:
        raise refuse("model", f"{job.model} has no safetensors files to merge the adapter into", WHOLE)
    return dict.fromkeys(_open(single).tensors, single)


def _file(job: ExportJob, name: str) -> Path | None:
    try:
        found = cached_file(job.model, name, revision=job.revision or None, _raise_exceptions_for_missing_entries=False)
    except OSError as error:
        raise refuse("model", str(error).strip().split("\n", 1)[0], WHOLE) from error
    return Path(found) if found else None
