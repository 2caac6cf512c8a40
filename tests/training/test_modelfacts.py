"""What a model folder's headers tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.modelfacts import parameters
from training.samples import tiny


def file(path: Path, header: object, length: int | None = None) -> None:
    text = json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text)


def test_it_counts_a_real_model(tmp_path: Path) -> None:
    tiny.build(tmp_path)
    assert parameters(tmp_path) == 4983552


def test_it_adds_up_all_files(tmp_path: Path) -> None:
    file(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt"}, "w": {"shape": [3, 5]}, "s": {"shape": []}})
    file(tmp_path / "b.safetensors", {"v": {"shape": [7]}})
    assert parameters(tmp_path) == 23


@pytest.mark.parametrize("header", [["w"], {"w": 1}, {"w": {"shape": "x"}}, {"w": {}}, "w"])
def test_a_broken_header_tells_nothing(tmp_path: Path, header: object) -> None:
    file(tmp_path / "a.safetensors", header)
    assert parameters(tmp_path) is None


def test_a_header_without_end_is_not_read(tmp_path: Path) -> None:
    file(tmp_path / "a.safetensors", {}, 1 << 60)
    assert parameters(tmp_path) is None


def test_other_files_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert parameters(tmp_path) is None
