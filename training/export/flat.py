"""The checks of a model that is larger than memory: the files against the config and against the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from ..spec.job import ExportJob
from .blueprint import blueprint, load_config
from .source import Source, names, open_source
from .stream import CODES, target_dtype

SHOWN = 5
Shape = tuple[tuple[int, ...], str]


def headers_differ(job: ExportJob, folder: Path) -> list[str]:
    """Return the tensors whose name, shape or dtype in the files is not as it should be.

    That is what the config in `folder` has; for an adapter alone, which has none, what the checkpoint has.
    """
    chosen = getattr(torch, job.dtype)
    own = job if job.adapter == "adapter" else job.model_copy(update={"model": str(folder), "revision": ""})
    plan = blueprint(load_config(own), trust_remote_code=job.trust_remote_code)
    source = open_source(job, plan)
    shapes = {name: source.tensors[name].shape for name in source.tensors} | plan.shapes
    wanted = {n: (shapes[n], CODES[target_dtype(source.tensors[n], chosen)]) for n in names(job, plan, source)}
    found = {name: shape for path in _files(folder) for name, shape in _shapes(path)}
    return sorted(name for name in wanted | found if wanted.get(name) != found.get(name))


def contents_differ(job: ExportJob, folder: Path) -> list[str]:
    """Return the tensors whose values in the files are not the source's, converted; one piece at a time."""
    source = open_source(job, blueprint(load_config(job), trust_remote_code=job.trust_remote_code))
    differ = []
    for path in _files(folder):
        with safe_open(path, "pt") as file:
            differ += [name for name in file.keys() if not _equal(file, name, source)]  # noqa: SIM118 - no mapping
    return differ


def listed(names: list[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _shapes(path: Path) -> Iterator[tuple[str, Shape]]:
    with safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118 - no mapping
            part = file.get_slice(name)
            yield name, (tuple(part.get_shape()), part.get_dtype())


def _equal(file: Any, name: str, source: Source) -> bool:
    if not source.tensors[name].shape:
        return bool(torch.equal(file.get_tensor(name), next(source.blocks(name)).to(file.get_tensor(name).dtype)))
    part, row = file.get_slice(name), 0
    for block in source.blocks(name):
        written = part[row : row + len(block)]
        if not torch.equal(written, block.to(written.dtype)):
            return False
        row += len(block)
    return True
