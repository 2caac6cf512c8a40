"""What the tests of training share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.training.attempts import Attempts

if TYPE_CHECKING:
    from training.ranks import Ranks


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    """The ranks of a process group of one: this process."""
    import torch.distributed as dist

    from training.ranks import Ranks

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield Ranks(0, 0)
    dist.destroy_process_group()


@pytest.fixture(scope="session")
def sharded_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real sharded checkpoints of two ranks; see sharded.py."""
    from tests.training import sharded

    return sharded.make(tmp_path_factory.mktemp("sharded") / "made")


@pytest.fixture(scope="session")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Attempts:
    """Real training attempts, each launched when first asked for."""
    return Attempts(tmp_path_factory.mktemp("attempts"))


@pytest.fixture(scope="session")
def export_job(sharded_checkpoints: Path) -> Callable[..., object]:
    """Return a function that describes an export into a folder."""
    from training.spec.job import ExportJob

    def describe(folder: Path, kind: str, **fields: object) -> ExportJob:
        source = sharded_checkpoints / kind
        return ExportJob(
            checkpoint=str(source / "checkpoint-7"),
            model=str(source / "base"),
            out=str(folder / "out" / "model"),
            events=str(folder / "events.jsonl"),
            **fields,  # type: ignore[arg-type]
        )

    return describe
