"""What can be checked of an export without loading it: its headers against the config, its values, its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from ..adapters.names import WEIGHTS
from ..spec.job import ExportJob
from .blueprint import blueprint, load_config
from .layout import INDEX, SINGLE
from .source import names, open_source
from .stream import target_dtype
from .vocabulary import plan_for
from .weights import Weights, of_files, of_source
from .written import WrittenTensors

SHOWN = 5
WRAPPERS = ("_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module.", "module.", "base_model.model.")
# Weights of other kinds, and what a save leaves half done.
STRAY = {".bin", ".ckpt", ".distcp", ".gguf", ".h5", ".msgpack", ".partial", ".pkl", ".pt", ".pth", ".tmp"}
Shape = tuple[tuple[int, ...], torch.dtype]


def headers_differ(job: ExportJob, folder: Path) -> list[str]:
    """Return the tensors whose name, shape or dtype in the files is not as it should be.

    That is what the config in `folder` has; for an adapter alone, which has none, what the checkpoint has.
    """
    chosen = getattr(torch, job.dtype)
    own = job if job.adapter == "adapter" else job.model_copy(update={"model": str(folder), "revision": ""})
    plan = blueprint(load_config(own), trust_remote_code=job.trust_remote_code)
    source = open_source(job, plan)
    shapes = {name: source.tensors[name].shape for name in source.tensors} | plan.shapes
    wanted = {n: (shapes[n], target_dtype(source.tensors[n], chosen)) for n in names(job, plan, source)}
    found = {name: (entry.shape, entry.dtype) for name, entry in WrittenTensors(folder).tensors.items()}
    return sorted(name for name in wanted | found if wanted.get(name) != found.get(name))


def wrapped(job: ExportJob, folder: Path) -> list[str]:
    """Return the names in which a wrapper of the training has left its own; PEFT's belongs to an adapter alone."""
    wrappers = WRAPPERS[:-1] if job.adapter == "adapter" else WRAPPERS
    found = WrittenTensors(folder).tensors
    return sorted(n for n in found if any(n.startswith(w) or f".{w}" in n for w in wrappers))


def index_problems(job: ExportJob, folder: Path) -> list[str]:
    """Return what is wrong with which tensor is in which file, and what lies there beside the model; in words."""
    written = WrittenTensors(folder)
    problems = [f"{name} is in more than one file" for name in written.twice]
    if (folder / INDEX).exists():
        problems += _index_problems(written, json.loads((folder / INDEX).read_text("utf-8")))
    else:
        single = WEIGHTS if job.adapter == "adapter" else SINGLE
        problems += [f"{name} is no part of the model" for name in written.files if name != single]
    return problems + [f"{name} does not belong there" for name in _strays(folder)]


def _index_problems(written: WrittenTensors, index: dict[str, dict[str, object]]) -> list[str]:
    places, total = index["weight_map"], index["metadata"]["total_size"]
    problems = [
        f"{name} is in {written.places.get(name, 'no file')} and by the index in {places.get(name, 'none')}"
        for name in sorted(places.keys() | written.places.keys())
        if places.get(name) != written.places.get(name)
    ]
    problems += [f"{file} is not in the index" for file in written.files if file not in places.values()]
    size = sum(torch.Size(e.shape).numel() * e.dtype.itemsize for e in written.tensors.values())
    return problems + ([] if size == total else [f"the tensors are {size} bytes and by the index {total}"])


def _strays(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and (not path.is_file() or path.suffix in STRAY):
            yield path.name


def contents(job: ExportJob, folder: Path) -> tuple[set[str], set[str]]:
    """Compare every value in the files with the source's, converted; return what differs and what is not finite."""
    source = open_source(job, plan_for(job))
    ours = of_files(WrittenTensors(folder))
    theirs = of_source(source, ours, getattr(torch, job.dtype))
    ours.finish()
    theirs.finish()
    return differ(ours, theirs), ours.not_finite


def differ(ours: Weights, theirs: Weights) -> set[str]:
    """Return the tensors of which a value is another; everything has been read."""
    return {name for name, found in ours.hashes.items() if theirs.hashes[name] != found}


def listed(names: Iterable[str]) -> str:
    """Return the first few names, and how many more there are."""
    known = sorted(names)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more
