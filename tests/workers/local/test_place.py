"""Two launchers never share one state folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.local.place import CannotStart, Place


def test_a_second_launcher_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with Place(tmp_path).lock(), pytest.raises(CannotStart, match=f"in use by process {os.getpid()}.*SHARDBOARD_STATE"):
        Place(tmp_path).lock()


def test_the_folder_is_free_again_afterwards(tmp_path: Path) -> None:
    Place(tmp_path).lock().close()
    with Place(tmp_path).lock() as held:
        assert not held.closed


def test_the_environment_names_it_and_children_get_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARDBOARD_STATE", "mine")
    assert Place.from_environment().root == tmp_path / "mine"
    assert os.environ["SHARDBOARD_STATE"] == str(tmp_path / "mine")
