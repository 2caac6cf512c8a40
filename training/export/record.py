"""What of an export lies on the disk for sure, so that one that was killed goes on: `.export.json` in its folder.

A line of it is written after what it claims was flushed to the disk, under another name, and renamed. Another job,
checkpoint, base model or version of a library has another fingerprint, and nothing of it is taken over.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..spec.folder import EXPORT_RECORD
from ..spec.job import ExportJob
from .pinned import commit

NAME = EXPORT_RECORD
FORMAT = 1  # of what is written from the same input; raised where that changes
PACKAGES = ("torch", "transformers", "tokenizers", "peft")


class Durable(BaseModel):
    """The beginning of a file, or all of it: bytes that are on the disk, and their SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int = Field(ge=0)
    sha256: str


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fingerprint: str
    files: dict[str, Durable] = {}
    exported: dict[str, Any] | None = Field(None, description="The event's data, once the folder is proven.")


def read(folder: Path) -> Record | None:
    """Return the record in `folder`; None where there is none, or a torn one."""
    try:
        return Record.model_validate_json((folder / NAME).read_bytes())
    except (OSError, ValidationError):
        return None


class Ledger:
    """The record of the export that is at work in `folder`. Any thread may note."""

    def __init__(self, folder: Path, record: Record):
        self.folder, self.record = folder, record
        self._lock = threading.Lock()

    def note(self, name: str, durable: Durable) -> None:
        """Say that this much of a file is on the disk."""
        with self._lock:
            self.record.files[name] = durable
            self._save()

    def proven(self, exported: dict[str, Any]) -> None:
        """Say that all is done but the folder's name and the telling."""
        with self._lock:
            self.record.exported = exported
            self._save()

    def start(self) -> None:
        with self._lock:
            self._save()

    def _save(self) -> None:
        draft = self.folder / f"{NAME}.tmp"
        with draft.open("w", encoding="utf-8") as file:
            file.write(self.record.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / NAME)


def fingerprint(job: ExportJob, sources: Mapping[str, Any]) -> str:
    """Return the same for two starts that have to give the same bytes. `sources`: what tells the shards' contents.

    Of a hub's model the commit counts that is here now: its config has to be read before, which may fetch a newer one.
    """
    asked = job.model_dump(mode="json", exclude={"events", "out"})
    base = commit(job) or _files(Path(job.model))
    facts = [FORMAT, asked, sources, base, {name: version(name) for name in PACKAGES}]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _files(model: Path) -> list[Any]:
    """Return name, size and time of the base model's files; nothing where it is no folder."""
    if not model.is_dir():
        return []
    return [[p.name, p.stat().st_size, p.stat().st_mtime_ns] for p in sorted(model.iterdir()) if p.is_file()]
