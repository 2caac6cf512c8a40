"""The base model's own tensors, read slice by slice out of its safetensors files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils import cached_file

from ..spec.job import ExportJob
from .distcp import Stored
from .layout import INDEX, SINGLE
from .outcome import refuse
from .stream import CODES

DTYPES = {code: dtype for dtype, code in CODES.items()}
WHOLE = "Name the unquantised model that this run was trained from, with its weights in safetensors files."


class Base:
    """`tensors`: shape and number format by the names in the files. Nothing else is read before it is asked for."""

    def __init__(self, job: ExportJob):
        self.places = _places(job)
        self.tensors: dict[str, Stored] = {}
        for path in sorted(set(self.places.values())):
            self._look_into(path)

    def _look_into(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - no mapping
                part = file.get_slice(name)
                if (dtype := DTYPES.get(part.get_dtype())) is None:
                    raise refuse("model", f"{name} is stored as {part.get_dtype()}", WHOLE)
                self.tensors[name] = Stored(tuple(part.get_shape()), dtype, ())

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Return rows `start` to `stop` of a tensor; all of one that has none."""
        with safe_open(self.places[name], "pt") as file:
            found: torch.Tensor = (
                file.get_slice(name)[start:stop] if self.tensors[name].shape else file.get_tensor(name)
            )
            return found


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
    with safe_open(single, "pt") as file:
        return dict.fromkeys(file.keys(), single)


def _file(job: ExportJob, name: str) -> Path | None:
    try:
        found = cached_file(job.model, name, revision=job.revision or None, _raise_exceptions_for_missing_entries=False)
    except OSError as error:
        raise refuse("model", str(error).strip().split("\n", 1)[0], WHOLE) from error
    return Path(found) if found else None
