"""The parts of an export, each by itself."""

from __future__ import annotations

import io
import json
import os
import pickle
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load
from torch.distributed.checkpoint.metadata import _MEM_FORMAT_ENCODING

from training.export import layout, space
from training.export.distcp import Checkpoint
from training.export.outcome import Damaged, NoRoom, reason_of
from training.export.shards.pieces import Window
from training.journal import Journal
from training.progress import Meter
from training.spec.events import parse

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=12)


def items(counts: list[int]) -> list[layout.Item]:
    return [layout.Item(f"t{i}", "U8", (count,), count) for i, count in enumerate(counts)]


@given(SIZES, st.integers(1, 100))
def test_every_tensor_is_in_one_file_in_order_and_within_the_limit(counts, limit):
    files = layout.plan(items(counts), limit)
    assert [item for file in files for item in file.items] == items(counts)
    for file in files:
        assert len(file.items) == 1 or sum(item.size for item in file.items) <= limit


@given(SIZES)
def test_a_file_is_what_the_safetensors_library_reads(counts):
    (file,) = layout.plan(items(counts), 10_000)
    bodies = [bytes([i]) * item.size for i, item in enumerate(file.items)]
    data = file.header + b"".join(bodies)
    assert len(data) == file.size
    read = load(data)
    assert {name: bytes(t.tolist()) for name, t in read.items()} == {
        item.name: body for item, body in zip(file.items, bodies, strict=True)
    }


def test_the_index_names_the_file_of_each_tensor():
    files = layout.plan(items([30, 30, 30]), 60)
    index = json.loads(layout.index(files))
    assert index["metadata"] == {"total_size": 90}
    assert index["weight_map"] == {
        "t0": "model-00001-of-00002.safetensors",
        "t1": "model-00001-of-00002.safetensors",
        "t2": "model-00002-of-00002.safetensors",
    }


@given(st.binary(max_size=50), st.data())
def test_a_window_reads_like_a_file_of_its_own(data, draw):
    start = draw.draw(st.integers(0, len(data)))
    length = draw.draw(st.integers(0, len(data) - start))
    window, truth = Window(io.BytesIO(data), start, length), io.BytesIO(data[start : start + length])
    for _ in range(5):
        to = draw.draw(st.integers(0, length + 3))
        count = draw.draw(st.integers(-1, length + 3))
        assert window.seek(to) == truth.seek(to)
        assert window.read(count) == truth.read(count)
        assert window.tell() == truth.tell()
    assert window.seek(0, os.SEEK_END) == truth.seek(0, os.SEEK_END)


@pytest.mark.ranks
def test_a_tensor_sharded_by_columns_is_put_together(sharded_checkpoints):
    checkpoint = Checkpoint(sharded_checkpoints / "columns")
    (block,) = checkpoint.blocks("w")
    assert torch.equal(block, torch.arange(15, dtype=torch.float32).reshape(3, 5))
    (count,) = checkpoint.blocks("count")
    assert count.item() == 3


@pytest.mark.ranks
def test_rows_come_in_blocks_across_pieces(sharded_checkpoints):
    checkpoint = Checkpoint(sharded_checkpoints / "tied" / "checkpoint-7" / "pytorch_model_fsdp_0")
    assert [tuple(b.shape) for b in checkpoint.blocks("model.embed_tokens.weight")] == [(4097, 64)]
    assert checkpoint.files() == {"__0_0.distcp", "__1_0.distcp"}


def by_name(member, protocol):
    return getattr, (type(member), member.name)


def test_it_reads_what_python_before_3_11_4_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(_MEM_FORMAT_ENCODING, "__reduce_ex__", by_name)
    dcp.save({"model": {"count": torch.arange(4)}}, checkpoint_id=str(tmp_path), no_dist=True)
    assert b"getattr" in (tmp_path / ".metadata").read_bytes()
    (block,) = Checkpoint(tmp_path).blocks("count")
    assert block.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("asked", [(torch.Size, "numel"), (_MEM_FORMAT_ENCODING, "__class__")])
def test_a_metadata_file_looks_nothing_else_up(tmp_path, asked):
    class Asks:
        def __reduce__(self):
            return getattr, asked

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Asks()))
    with pytest.raises(Damaged, match=f"names {asked[1]} of .*, which no checkpoint needs"):
        Checkpoint(tmp_path)


def test_a_metadata_file_that_is_no_pickle_is_refused(tmp_path):
    (tmp_path / ".metadata").write_bytes(b"\x80\x04nonsense")
    with pytest.raises(Damaged, match=r"\.metadata: can't be read"):
        Checkpoint(tmp_path)


def test_too_little_room_is_told_in_bytes():
    space.check_disk(1000, 1000 + space.COMPANIONS, "/scratch")
    with pytest.raises(NoRoom, match=r"67,109,864 bytes are needed in /scratch and 67,109,863 are free") as caught:
        space.check_disk(1000, 999 + space.COMPANIONS, "/scratch")
    assert reason_of(caught.value) == "disk_full"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "disk_full"),
        (Exception("No space left on device (os error 28)"), "disk_full"),
        (OSError(13, "Permission denied"), "permission"),
        (SystemExit("ended by signal 15"), "stopped_unsaved"),
        (AssertionError("ours"), None),
    ],
)
def test_each_end_has_its_reason(error, reason):
    assert reason_of(error) == reason


def test_a_meter_tells_once_a_second_and_never_twice_the_same(tmp_path):
    now = [0.0]
    meter = Meter(Journal(tmp_path / "events"), "stream", 100, clock=lambda: now[0])
    for seconds, count in [(0.4, 10), (0.9, 10), (1.0, 10), (1.5, 10), (2.1, 10)]:
        now[0] = seconds
        meter.add(count)
    meter.tell()
    told = [parse(line).data["done"] for line in Path(tmp_path / "events").read_bytes().splitlines()]
    assert told == [0, 30, 50]
