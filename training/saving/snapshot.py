"""One rank's part of a checkpoint, taken between two steps and written then or later."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.utils.serialization import config as serialization

from .checkpoints import FileFacts
from .stream import HashingFileSystem


@dataclass(frozen=True)
class Snapshot:
    """`sharded`: state by folder, of which this rank holds its shards. `files`: small files by name."""

    sharded: dict[str, dict[str, Any]]
    files: dict[str, bytes]

    def write(self, folder: Path, group: Any) -> dict[str, FileFacts]:
        """Write all of it under `folder`; return size and hash of each file of this rank, by name.

        All ranks must call, each with its own snapshot; they agree over `group`. On return every byte is on
        the disk. Raises CheckpointException on all ranks where one could not write its shards.
        """
        disk = HashingFileSystem()
        try:
            for name, state in self.sharded.items():
                _write_sharded(folder / name, state, disk, group)
            # Last, since a rank that fails here would leave the others waiting in a distributed save.
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                disk.put(folder / name, content)
        finally:
            disk.close()
        return {path.relative_to(folder).as_posix(): facts for path, facts in disk.facts.items()}


def _write_sharded(folder: Path, state: dict[str, Any], disk: HashingFileSystem, group: Any) -> None:
    writer = dcp.FileSystemWriter(folder)
    writer.fs = disk
    # Checksums inside the file are read by no one, loading included, and cost a quarter of a second a gigabyte.
    with warnings.catch_warnings(), serialization.patch({"save.compute_crc32": False}):
        warnings.filterwarnings("ignore", message=".*single process.*")  # one rank is a way to train like any other
        dcp.save(state, storage_writer=writer, planner=dcp.DefaultSavePlanner(), process_group=group)


class HostCopies:
    """Copies of shards in host memory, kept from save to save: new memory would cost more than the copying."""

    def __init__(self) -> None:
        on_gpu = torch.cuda.is_available()
        options = StagingOptions(
            use_pinned_memory=on_gpu,
            use_shared_memory=False,
            use_async_staging=False,
            use_non_blocking_copy=on_gpu,
        )
        self._stager = DefaultStager(options)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with its shards copied. Overwrites the copies of the one before."""
        staged = self._stager.stage(snapshot.sharded)
        assert isinstance(staged, dict)
        return Snapshot(staged, snapshot.files)
