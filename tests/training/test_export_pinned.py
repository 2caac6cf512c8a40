"""A hub's model is read of one commit, and another one is another export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from training.export import cli
from training.export.pinned import commit, pinned
from training.export.record import fingerprint
from training.spec.job import ExportJob

OLD, NEW = "1" * 40, "2" * 40


class Cache:
    """What a node has of house/base."""

    def __init__(self, folder: Path, base: Path):
        self.model, self.base = folder / "models--house--base", base

    def main(self, commit: str) -> None:
        """`main` has come to this commit, which is here."""
        for name in ("refs", "snapshots"):
            (self.model / name).mkdir(parents=True, exist_ok=True)
        (self.model / "snapshots" / commit).symlink_to(self.base)
        (self.model / "refs" / "main").write_text(commit)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharded_checkpoints: Path) -> Cache:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return Cache(tmp_path / "hub", sharded_checkpoints / "untied" / "base")


@pytest.fixture
def job(export_job: Any, tmp_path: Path) -> ExportJob:
    made: ExportJob = export_job(tmp_path, "untied")
    return made.model_copy(update={"model": "house/base"})


@pytest.mark.ranks
def test_another_commit_is_another_export(hub: Cache, job: ExportJob) -> None:
    assert commit(job) == ""
    hub.main(OLD)
    named = job.model_copy(update={"revision": OLD})
    before = fingerprint(job, {}), fingerprint(named, {})
    assert (pinned(job).revision, pinned(named).revision) == (OLD, OLD)
    hub.main(NEW)
    assert (pinned(job).revision, pinned(named).revision) == (NEW, OLD)
    assert fingerprint(job, {}) != before[0]
    assert fingerprint(named, {}) == before[1]
    assert commit(job.model_copy(update={"model": "/gone/away/from/here"})) == ""


@pytest.mark.ranks
def test_an_export_says_which_commit_it_read(hub: Cache, job: ExportJob) -> None:
    hub.main(OLD)
    assert cli.run(job) == 0, Path(job.events).read_text()
    told = json.loads((Path(job.out) / "passport.json").read_text())["model"]
    assert (told["location"], told["revision"]) == ("house/base", OLD)
