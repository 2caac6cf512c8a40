"""Numbers out of a checkpoint's files: however a tensor was cut, and however a piece of it was written."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from training.export.distcp import Checkpoint
from training.export.outcome import Damaged
from training.export.parts import BLOCK
from training.export.shards.archive import STORAGES, locate
from training.export.shards.boxes import Box, before, is_run, makes_up, overlap, split, within
from training.export.shards.pieces import Piece, Shard

DTYPES = sorted(STORAGES.values(), key=str)
ODD = (torch.float8_e4m3fn, torch.complex64, torch.uint16)
SIZE = (3, 5)
Cuts = Sequence[Sequence[int]]


def pieces(shape: tuple[int, ...], cuts: Cuts) -> Iterator[Box]:
    """Yield the grid that comes of cutting each dimension at these places; a place twice gives an empty shard."""
    spans = [list(pairwise([0, *sorted(at), extent])) for extent, at in zip(shape, cuts, strict=True)]
    for cell in product(*spans):
        yield Box(tuple(low for low, _ in cell), tuple(high - low for low, high in cell))


@st.composite
def sharded(draw: Any) -> tuple[tuple[int, ...], list[list[int]]]:
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=4)))
    return shape, [draw(st.lists(st.integers(0, extent), max_size=3)) for extent in shape]


@settings(max_examples=60)
@given(sharded(), st.integers(1, 60))
def test_every_number_comes_once_and_in_its_place_out_of_any_sharding(grid, most):
    shape, cuts = grid
    whole = Box((0,) * len(shape), shape)
    truth = np.arange(prod(shape)).reshape(shape)
    stored = {piece: truth[within(piece, whole)].flatten() for piece in pieces(shape, cuts)}
    found: list[int] = []
    for box in split(shape, most):
        assert box.count <= most
        assert is_run(box, whole)
        shares = {shared: piece for piece in stored if (shared := overlap(box, piece))}
        assert makes_up(shares, box)
        out = np.full(box.size, -1)
        for shared, piece in shares.items():
            at = before(shared, piece)
            assert is_run(shared, piece)
            assert (out[within(shared, box)] == -1).all(), "twice"
            out[within(shared, box)] = stored[piece][at : at + shared.count].reshape(shared.size)
        found += out.flatten().tolist()
    assert found == list(range(prod(shape)))


@given(st.integers(1, 12), st.lists(st.tuples(*[st.integers(0, 3)] * 2, *[st.integers(1, 3)] * 2), max_size=5))
def test_what_makes_up_a_box_has_each_number_once(width, drawn):
    whole = Box((0, 0), (3, width))
    parts = [part for y, x, h, w in drawn if (part := overlap(Box((y, x), (h, w)), whole))]
    counts = np.zeros(whole.size, int)
    for part in parts:
        counts[within(part, whole)] += 1
    assert makes_up(parts, whole) == bool((counts == 1).all())


@settings(max_examples=60)
@given(sharded(), st.data())
def test_a_run_is_what_has_no_gap(grid, draw):
    shape, _ = grid
    outer = Box((0,) * len(shape), shape)
    low = [draw.draw(st.integers(0, extent)) for extent in shape]
    inner = Box(tuple(low), tuple(draw.draw(st.integers(0, e - at)) for e, at in zip(shape, low, strict=True)))
    found = np.arange(outer.count).reshape(shape)[within(inner, outer)].flatten().tolist()
    if found:
        assert before(inner, outer) == found[0]
        assert is_run(inner, outer) == (found == list(range(found[0], found[0] + len(found))))


def saved(tensor: torch.Tensor) -> bytes:
    buffer = io.BytesIO()
    torch.save(tensor, buffer)
    return buffer.getvalue()


def written(folder: Path, tensor: torch.Tensor, cuts: Cuts) -> Checkpoint:
    """Write a checkpoint whose only tensor was sharded as `cuts` say, a file for every second piece."""
    chunks, places = [], {}
    files: dict[str, bytes] = {}
    whole = Box((0,) * tensor.ndim, tuple(tensor.shape))
    for number, box in enumerate(pieces(whole.size, cuts)):
        chunks.append(ChunkStorageMetadata(torch.Size(box.offset), torch.Size(box.size)))
        name, record = f"__{number // 2}_0.distcp", saved(tensor[within(box, whole)].clone())
        before_it = files.get(name, b"")
        if box.count:
            info = _StorageInfo(name, len(before_it), len(record))
            places[MetadataIndex("model.w", torch.Size(box.offset))] = info
            files[name] = before_it + record
    properties = TensorProperties(dtype=tensor.dtype)
    entry = TensorStorageMetadata(properties=properties, size=tensor.size(), chunks=chunks)
    (folder / ".metadata").write_bytes(pickle.dumps(Metadata({"model.w": entry}, storage_data=places)))
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return Checkpoint(folder)


@pytest.fixture
def no_torch_load(monkeypatch):
    """What is read must be read at its offset: torch.load is the way for what is not laid out as usual."""

    def never(*args: object, **how: object) -> None:
        raise AssertionError("torch.load was asked")

    monkeypatch.setattr(torch, "load", never)


GRIDS = {
    "whole": [[], []],
    "rows": [[3, 5], []],
    "columns": [[], [2, 3, 9]],
    "grid": [[1, 6], [4, 10]],
    "empty shards": [[0, 2, 2, 7], [11]],
}


@pytest.mark.parametrize("cuts", GRIDS.values(), ids=GRIDS.keys())
@pytest.mark.parametrize("most", [1, 12, 60, 10_000])
def test_a_tensor_is_put_together_from_files(tmp_path, no_torch_load, cuts, most):
    tensor = torch.arange(77, dtype=torch.int32).reshape(7, 11)
    parts = list(written(tmp_path, tensor, cuts).parts("w", most))
    assert max(part.bytes for part in parts) <= max(4, most)
    assert torch.cat([part.now() for part in parts]).tolist() == list(range(77))


@pytest.mark.parametrize("cuts", [[[1], []], [[], [7, BLOCK // 4 + 1]]], ids=["rows", "columns"])
def test_a_row_larger_than_a_part_comes_in_several(tmp_path, no_torch_load, cuts):
    tensor = torch.arange(2 * (BLOCK // 4 + 3), dtype=torch.int32).reshape(2, -1)
    checkpoint = written(tmp_path, tensor, cuts)
    parts = list(checkpoint.parts("w"))
    assert [part.bytes for part in parts] == [BLOCK, 12] * 2
    assert torch.equal(torch.cat([part.now() for part in parts]), tensor.flatten())
    assert torch.equal(torch.cat(list(checkpoint.blocks("w"))), tensor)


@pytest.mark.parametrize("change", [(0, 1), (0, 0)], ids=["partly", "wholly"])
def test_pieces_that_are_no_tensor_are_damaged(tmp_path, change):
    """A piece is said to lie elsewhere, so that as many numbers as before are there, one twice and one not at all."""
    checkpoint = written(tmp_path, torch.arange(4), [[2]])
    stored = checkpoint.tensors["w"]
    moved = tuple(Piece((at,), p.size, p.file, p.start, p.length) for at, p in zip(change, stored.pieces, strict=True))
    object.__setattr__(stored, "pieces", moved)
    with pytest.raises(Damaged, match="pieces overlap or leave gaps"):
        list(checkpoint.blocks("w"))


def numbers(dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(15) % 2 if dtype == torch.bool else torch.arange(15)).to(dtype).reshape(SIZE)


def read(folder: Path, record: bytes, dtype: torch.dtype, size: tuple[int, ...] = SIZE) -> torch.Tensor:
    """Read a piece as an export does, from the middle of a file."""
    path = folder / "__0_0.distcp"
    path.write_bytes(b"before" + record + b"behind")
    out = torch.empty(prod(size), dtype=dtype)
    piece = Piece((0,) * len(size), size, path.name, 6, len(record))
    Shard(path, None).read(piece, 0, out)
    return out.view(size)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_ordinary_record_is_read_at_its_offset(tmp_path, no_torch_load, dtype):
    assert torch.equal(read(tmp_path, saved(numbers(dtype)), dtype), numbers(dtype))
    assert read(tmp_path, saved(numbers(dtype)[0, 0].clone()), dtype, ()).item() == 0
    assert torch.equal(read(tmp_path, saved(numbers(dtype)[:1].clone()), dtype, (1, 5)), numbers(dtype)[:1])


def rezipped(record: bytes, how: int = zipfile.ZIP_STORED, **contents: bytes) -> bytes:
    """Return the record written again by another library, with other contents for what ends in these names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(record)) as old, zipfile.ZipFile(buffer, "w", how) as new:
        for info in old.infolist():
            name = info.filename.rpartition("/")[2]
            new.writestr(info.filename, contents.get(name, old.read(info)))
    return buffer.getvalue()


UNUSUAL = {
    "transposed": saved(numbers(torch.float32).t().contiguous().t()),
    "a view of more": saved(torch.arange(-5.0, 20.0)[5:20].view(SIZE)),
    "with gaps": saved(torch.arange(30.0)[::2].sub(0).div(2).repeat_interleave(2)[::2].view(SIZE)),
    "of a parameter": saved(torch.nn.Parameter(numbers(torch.float32))),
    "compressed": rezipped(saved(numbers(torch.float32)), zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("record", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_an_unusual_record_is_left_to_torch(tmp_path, record):
    assert locate(io.BytesIO(record), SIZE, torch.float32) is None
    assert torch.equal(read(tmp_path, record, torch.float32), numbers(torch.float32))


@pytest.mark.parametrize("dtype", ODD, ids=str)
def test_a_dtype_that_is_described_otherwise_is_left_to_torch(tmp_path, dtype):
    record = saved(numbers(dtype))
    assert locate(io.BytesIO(record), SIZE, dtype) is None
    assert torch.equal(read(tmp_path, record, dtype).view(torch.uint8), numbers(dtype).view(torch.uint8))


PLAIN = saved(numbers(torch.float32))
WRONG = {
    "another shape": saved(torch.arange(15.0)),
    "another dtype": saved(numbers(torch.int32)),
    "too few numbers": rezipped(PLAIN, **{"0": b"\0" * 56}),
    "no description": rezipped(PLAIN, **{"data.pkl": b""}),
    "a description of code": rezipped(PLAIN, **{"data.pkl": b"cos\nsystem\n(S'true'\ntR."}),
    "no tensor": rezipped(PLAIN, **{"data.pkl": pickle.dumps([1, 2], 2)}),
    "nothing": b"",
    "no archive": b"PK\x03\x04" + bytes(200),
}


@pytest.mark.parametrize("record", WRONG.values(), ids=WRONG.keys())
def test_a_record_of_something_else_is_refused(tmp_path, record):
    assert locate(io.BytesIO(record), SIZE, torch.float32) is None
    with pytest.raises(Damaged):
        read(tmp_path, record, torch.float32)


def test_the_other_byte_order_is_never_taken_as_it_is(tmp_path):
    record = rezipped(PLAIN, byteorder=b"big")
    assert locate(io.BytesIO(record), SIZE, torch.float32) is None
    assert torch.equal(read(tmp_path, record, torch.float32), swapped(numbers(torch.float32)))


def swapped(tensor: torch.Tensor) -> torch.Tensor:
    return torch.frombuffer(bytearray(tensor.numpy().byteswap().tobytes()), dtype=torch.float32).view(SIZE)


@settings(max_examples=20)
@given(st.integers(0, len(PLAIN) - 1))
def test_a_record_that_was_cut_is_refused(tmp_path_factory, length):
    with pytest.raises(Damaged):
        read(tmp_path_factory.mktemp("cut"), PLAIN[:length], torch.float32)


@given(st.integers(0, len(PLAIN) - 1), st.integers(1, 255))
def test_a_changed_byte_never_makes_other_bytes_the_numbers(at, flip):
    data = bytearray(PLAIN)
    data[at] ^= flip
    true = locate(io.BytesIO(PLAIN), SIZE, torch.float32)
    assert true is not None
    assert locate(io.BytesIO(bytes(data)), SIZE, torch.float32) in (None, true)


@settings(max_examples=60)
@given(st.integers(0, len(PLAIN) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found_or_left_to_the_hash(tmp_path_factory, at, flip):
    data = bytearray(PLAIN)
    data[at] ^= flip
    with suppress(Damaged):
        read(tmp_path_factory.mktemp("changed"), bytes(data), torch.float32)
