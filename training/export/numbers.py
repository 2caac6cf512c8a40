"""Which number format an export is in: as asked, or as the base model is stored."""

from __future__ import annotations

import json
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from ..spec.job import FORMATS, ExportJob
from .layout import INDEX, SINGLE

UNSAID = "bfloat16"  # of a base that says nothing: half of fp32's bytes, and none of its range lost
CODES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
HEADER_BYTES = 100 << 20  # safetensors' own limit


def settled(job: ExportJob, config: Any) -> ExportJob:
    """Return `job` with the format that it comes to; `config` is the base model's."""
    return job if job.dtype != "base" else job.model_copy(update={"dtype": of_base(job, config)})


def of_base(job: ExportJob, config: Any) -> str:
    """Return the base model's format: as its config says, else that of most bytes of its files, else UNSAID."""
    told = str(getattr(config, "dtype", None) or "").removeprefix("torch.")
    return told if told in FORMATS else _stored(job) or UNSAID


def _stored(job: ExportJob) -> str:
    """Return the format of most of the numbers in the base's safetensors files; empty where there are none to see."""
    counts: Counter[str] = Counter()
    for path in _files(job):
        for entry in _header(path).values():
            counts[CODES.get(entry.get("dtype", ""), "")] += prod(entry.get("shape", ()))
    counts.pop("", None)
    return counts.most_common(1)[0][0] if counts else ""


def _files(job: ExportJob) -> list[Path]:
    single, index = _cached(job, SINGLE), _cached(job, INDEX)
    if index is None:
        return [single] if single else []
    names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    return [path for name in sorted(names) if (path := _cached(job, name))]


def _cached(job: ExportJob, name: str) -> Path | None:
    """Return a file of the base where it is on this node already: a format is not worth a download of its weights."""
    found = cached_file(
        job.model,
        name,
        revision=job.revision or None,
        local_files_only=True,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )
    return Path(found) if found else None


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(length)) if length <= HEADER_BYTES else {}
    return {name: entry for name, entry in header.items() if name != "__metadata__"}
