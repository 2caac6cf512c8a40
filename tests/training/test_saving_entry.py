"""A save that not all ranks enter, on two real ranks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.training import ranks_harness
from training.endings import Ended
from training.journal import tail
from training.saving.saver import Saver
from training.spec.sections.checkpoints import Checkpoints

pytestmark = pytest.mark.ranks


def one_rank(folder: Path, rank: int, absent: int) -> None:
    """Come to a save, unless `absent`; leave in a file how it went."""
    import torch.distributed as dist

    from training.journal import Journal
    from training.ranks import Ranks

    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    saver = Saver(
        str(folder / "saved"),
        Checkpoints(keep=1),
        Ranks(rank, 0),
        Journal(folder / f"{rank}.jsonl"),
        timeout_seconds=0.5,
    )
    told = folder / f"{1 - absent}.txt"
    if rank == absent:  # it is alive, and busy with something else
        while not told.exists():
            time.sleep(0.01)
    else:
        draft = told.with_suffix(".draft")
        draft.write_text(_entered(saver))
        draft.rename(told)
    os._exit(0)  # what is left of the group would wait for the other rank


def _entered(saver: Saver) -> str:
    try:
        saver.enter(7)
    except Ended as ended:
        return f"{ended.reason}: {ended}"
    return "entered"


@pytest.mark.parametrize(
    ("absent", "text"),
    [
        (1, "rank_failed: rank 1 (node 1) did not enter the save of step 7 within 0.5 s"),
        (0, "rank_failed: rank 0 did not answer in the save of step 7 within 0.5 s, or it names a rank that did not"),
    ],
)
def test_a_rank_that_stays_away_is_named(tmp_path: Path, absent: int, text: str) -> None:
    context = ranks_harness.server()
    ranks = [context.Process(target=one_rank, args=(tmp_path, rank, absent)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(ranks_harness.LIMIT)
        rank.kill()
    present = 1 - absent
    assert (tmp_path / f"{present}.txt").read_text() == text
    (warning,) = tail(tmp_path / f"{present}.jsonl")
    assert (warning.kind, warning.step) == ("warning", 7)
    assert warning.data["text"] == text.removeprefix("rank_failed: ")
