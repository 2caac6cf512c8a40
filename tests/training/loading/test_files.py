"""Reading model files: headers, broken ones, pieces, number formats."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from training.loading import reader
from training.loading.stored import Stored, Unfit, read_header, stored_in, weight_files
from training.spec.lint import Refused


def write(folder: Path, **tensors: torch.Tensor) -> dict[str, Stored]:
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return stored_in(folder)


def read(stored: Stored, rows: range, dtype: torch.dtype) -> torch.Tensor:
    into = torch.empty((len(rows), *stored.shape[1:]) if stored.shape else (), dtype=dtype)
    files = reader.Files()
    reader.read_rows(files, stored, rows, into, reader.new_buffer())
    files.close()
    return into


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_rows_are_the_tensors_own_in_each_number_format(
    tmp_path: Path, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PIECE", 64)  # many pieces, and rows that don't end where one does
    whole = torch.randn(11, 5, generator=torch.Generator().manual_seed(1)).to(dtype)
    stored = write(tmp_path, w=whole)["w"]
    for rows in (range(11), range(3, 8), range(10, 11), range(4, 4)):
        for to in (torch.float32, torch.bfloat16):
            assert torch.equal(read(stored, rows, to), whole[rows.start : rows.stop].to(to))


def test_a_scalar_and_whole_numbers_are_read(tmp_path: Path) -> None:
    stored = write(tmp_path, scale=torch.tensor(2.5), ids=torch.arange(7))
    assert read(stored["scale"], range(1), torch.float32) == 2.5
    assert torch.equal(read(stored["ids"], range(2, 5), torch.int64), torch.tensor([2, 3, 4]))


def test_a_file_cut_short_while_it_is_read_is_an_error_and_no_crash(tmp_path: Path) -> None:
    stored = write(tmp_path, w=torch.ones(1000, 10))["w"]
    with (tmp_path / "model.safetensors").open("r+b") as file:
        file.truncate(2000)
    with pytest.raises(OSError, match=r"ends before w does"):
        read(stored, range(1000), torch.float32)


def header(path: Path, **entries: object) -> None:
    body = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(body)) + body + bytes(40))


ENTRY = {"dtype": "F32", "shape": [2, 5], "data_offsets": [0, 40]}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (ENTRY | {"data_offsets": [8, 48]}, "does not lie in the file"),
        (ENTRY | {"shape": [2, 6]}, "does not lie in the file"),
        (ENTRY | {"dtype": "F8_E5M2"}, "number format F8_E5M2"),
        ({"dtype": "F32"}, "can't be read"),
        ("x", "can't be read"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, entry: object, said: str) -> None:
    header(tmp_path / "a.safetensors", w=ENTRY)
    assert read_header(tmp_path / "a.safetensors")["w"].shape == (2, 5)
    header(tmp_path / "a.safetensors", w=entry)
    with pytest.raises(Refused, match=said):
        read_header(tmp_path / "a.safetensors")


DEEP = struct.pack("<Q", 100_000) + b"[" * 100_000


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, struct.pack("<Q", 4) + b"nope", struct.pack("<Q", 99) + b"{}", DEEP]
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(Refused, match="its header can't be read"):
        read_header(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"weight_map": {"w": "../a.safetensors"}}, "no file beside it"),
        ({"weight_map": {"w": "gone.safetensors"}}, "named by the index and is not there"),
        ({}, "can't be read"),
        ([], "can't be read"),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path: Path, index: object, said: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(Refused, match=said):
        stored_in(tmp_path)


def test_a_folder_without_safetensors_is_for_another_way(tmp_path: Path) -> None:
    with pytest.raises(Unfit):
        weight_files(tmp_path)
