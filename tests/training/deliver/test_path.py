"""Deliveries to a folder: whole or not there, resumed, and never over something else unasked."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver.harness import (
    deliver,
    describe,
    events,
    flip,
    make_export,
    sha256,
    start,
    sums_hold,
    until,
)
from training.deliver import swap

LARGE = {"a.safetensors": 24 << 20, "b.safetensors": 96 << 20, "config.json": 100}


def to(folder: Path) -> dict[str, Any]:
    return {"kind": "path", "folder": str(folder)}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_it_works(export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").mkdir()
    code, delivered = deliver(tmp_path, export, to(tmp_path / "models" / "mine"))
    assert code == 0
    copy = tmp_path / "models" / "mine"
    sent = f"{delivered['bytes_sent'] / 1e6:.1f} MB sent"
    said = f"delivered: {len(names(copy))} files, {sent}, 0.0 MB were there already: {copy}\n"
    assert capsys.readouterr() == (said, "")
    assert names(copy) == names(export) | {"SHA256SUMS"}
    assert sums_hold(copy)
    assert names(tmp_path / "models") == {"mine"}
    assert delivered["where"] == str(copy)
    assert delivered["url"] == copy.as_uri()
    assert delivered["bytes_sent"] == sum(f["size"] for f in delivered["files"]) > 5 << 20
    assert (delivered["bytes_skipped"], delivered["already"], delivered["replaced"]) == (0, False, False)
    phases = [e.data["phase"] for e in events(tmp_path) if e.kind == "progress"]
    assert [p for n, p in enumerate(phases) if phases[:n].count(p) == 0] == ["send", "verify"]
    assert all(e.data["done"] <= e.data["total"] for e in events(tmp_path) if e.kind == "progress")


def test_an_export_that_brings_its_own_sums_keeps_them(export: Path, tmp_path: Path) -> None:
    proof = json.loads((export / "proof.json").read_text())
    lines = [f"{f['sha256']}  {f['name']}\n" for f in proof["files"]]
    (export / "SHA256SUMS").write_text("".join([*lines, f"{sha256(export / 'proof.json')}  proof.json\n"]))
    assert deliver(tmp_path, export, to(tmp_path / "copy"))[0] == 0
    assert sha256(tmp_path / "copy" / "SHA256SUMS") == sha256(export / "SHA256SUMS")
    assert not [e for e in events(tmp_path) if e.kind == "warning"]


def test_the_copy_is_independent(export: Path, tmp_path: Path) -> None:
    deliver(tmp_path, export, to(tmp_path / "copy"))
    for path in (tmp_path / "copy").iterdir():
        assert path.stat().st_nlink == 1
    flip(export / "config.json")
    assert sums_hold(tmp_path / "copy")


def test_the_same_content_is_there_already_and_other_content_is_refused(export: Path, tmp_path: Path) -> None:
    deliver(tmp_path, export, to(tmp_path / "copy"))
    before = (tmp_path / "copy" / "config.json").stat().st_ino
    code, delivered = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, delivered["already"], delivered["bytes_sent"]) == (0, True, 0)
    assert delivered["note"] == "it was there already"
    assert (tmp_path / "copy" / "config.json").stat().st_ino == before
    flip(tmp_path / "copy" / "config.json")
    code, finished = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, finished["reason"]) == (1, "configuration")
    assert (
        "holds other content. Choose another folder or name, or let it be replaced (replace: true)." in finished["text"]
    )
    assert not sums_hold(tmp_path / "copy")


@pytest.mark.parametrize("exchanges", [True, False])
def test_replace_swaps_other_content(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:  # as network file systems answer
        monkeypatch.setattr(swap, "RENAME_EXCHANGE", 1 << 20)
    (tmp_path / "models" / "copy" / "deep").mkdir(parents=True)
    (tmp_path / "models" / "copy" / "old.bin").write_text("old")
    code, delivered = deliver(tmp_path, export, to(tmp_path / "models" / "copy"), replace=True)
    assert (code, delivered["replaced"]) == (0, True)
    assert sums_hold(tmp_path / "models" / "copy")
    assert names(tmp_path / "models") == {"copy"}
    assert "old.bin" not in names(tmp_path / "models" / "copy")


@pytest.mark.parametrize("spoil", ["flipped", "cut", "missing", "link"])
def test_a_file_changed_since_its_proof_is_refused_and_nothing_gets_the_name(
    export: Path, tmp_path: Path, spoil: str
) -> None:
    weights = export / "model-00001-of-00002.safetensors"
    if spoil == "flipped":
        flip(weights)
    elif spoil == "cut":
        os.truncate(weights, 4 << 20)
    else:
        weights.rename(tmp_path / "elsewhere")
    if spoil == "link":
        weights.symlink_to(tmp_path / "elsewhere")
    code, finished = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, finished["reason"]) == (1, "data")
    assert weights.name in finished["text"]
    assert not list(tmp_path.glob("copy*")), "no later try can go on from what has come, so it does not stay"


def test_a_damaged_export_never_costs_what_had_the_place_before(export: Path, tmp_path: Path) -> None:
    """A kill between the two renames has left it in the working folder alone."""
    old = tmp_path / "copy.delivery" / "old"
    old.mkdir(parents=True)
    (old / "weights.bin").write_text("the only one")
    (old.parent / "of-shardboard").touch()
    flip(export / "model-00001-of-00002.safetensors")
    assert deliver(tmp_path, export, to(tmp_path / "copy"))[1]["reason"] == "data"
    assert (old / "weights.bin").read_text() == "the only one"
    assert names(old.parent) == {"of-shardboard", "old"}


NO_PROOFS = [
    "",
    "[]",
    '{"files": [{"name": "../x", "size": 1, "sha256": "0"}]}',
    '{"files": [{"name": "x", "size": 1e400, "sha256": "0"}]}',
    '{"files": []}',
]


@pytest.mark.parametrize("proof", NO_PROOFS)
def test_what_is_no_proof_is_refused(export: Path, tmp_path: Path, proof: str) -> None:
    (export / "proof.json").write_text(proof)
    code, finished = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, finished["reason"]) == (1, "configuration")
    (export / "proof.json").unlink()
    assert "Only an export that is proven is delivered" in deliver(tmp_path, export, to(tmp_path / "copy"))[1]["text"]
    (export / "proof.json").mkdir()
    assert "proof.json is no file" in deliver(tmp_path, export, to(tmp_path / "copy"))[1]["text"]


def test_a_file_beside_the_proofs_is_named_and_left(export: Path, tmp_path: Path) -> None:
    (export / "notes.txt").write_text("mine")
    assert deliver(tmp_path, export, to(tmp_path / "copy"))[0] == 0
    assert "notes.txt" not in names(tmp_path / "copy")
    assert any("notes.txt" in e.data["text"] for e in events(tmp_path) if e.kind == "warning")


BAD = ["no folder above", "a file", "a link", "not ours", "our place a link", "our place a file", "inside by a link"]


@pytest.mark.parametrize("way", BAD)
def test_bad_places_are_refused_before_anything_is_written(export: Path, tmp_path: Path, way: str) -> None:
    folder = tmp_path / "models" / "copy"
    if way != "no folder above":
        folder.parent.mkdir()
    if way == "a file":
        folder.write_text("mine")
    elif way == "a link":
        folder.symlink_to(tmp_path)
    elif way == "not ours":
        (tmp_path / "models" / "copy.delivery").mkdir()
        (tmp_path / "models" / "copy.delivery" / "x").touch()
    elif way == "our place a link":
        (tmp_path / "data").mkdir()
        (tmp_path / "models" / "copy.delivery").symlink_to(tmp_path / "data")
    elif way == "our place a file":
        (tmp_path / "models" / "copy.delivery").touch()
    elif way == "inside by a link":
        folder.parent.rmdir()
        folder.parent.symlink_to(export)
    before = sorted(tmp_path.rglob("*"))
    code, finished = deliver(tmp_path, export, to(folder))
    assert (code, finished["reason"]) == (1, "configuration")
    assert finished["text"].startswith("target.folder: ")
    assert sorted(p for p in tmp_path.rglob("*") if p.name != "events.jsonl") == before


@pytest.mark.root
def test_a_file_system_that_takes_no_folder_is_named(export: Path, tmp_path: Path) -> None:
    code, finished = deliver(tmp_path, export, to(Path("/proc/no-such-model")))
    assert (code, finished["reason"]) == (1, "destination")
    assert "no folder can be made in /proc" in finished["text"]


def test_a_second_delivery_to_the_same_folder_is_refused(export: Path, tmp_path: Path) -> None:
    import fcntl

    work = tmp_path / "copy.delivery"
    work.mkdir()
    (work / "of-shardboard").touch()
    handle = os.open(work, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    code, finished = deliver(tmp_path, export, to(tmp_path / "copy"))
    os.close(handle)
    assert (code, "another delivery" in finished["text"]) == (1, True)
    assert deliver(tmp_path, export, to(tmp_path / "copy"))[0] == 0


def test_a_request_to_stop_is_heeded_and_what_is_whole_stays(export: Path, tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    code, finished = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, finished["reason"]) == (1, "stopped_unsaved")
    assert not (tmp_path / "copy").exists()


def test_killed_in_the_middle_it_goes_on_with_what_is_whole(tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", LARGE)
    job = describe(tmp_path, export, to(tmp_path / "copy"))
    process = start(tmp_path, job)
    second = tmp_path / "copy.delivery" / "new" / "b.safetensors"
    until(lambda: second.exists() and second.stat().st_size)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "copy").exists()
    code, delivered = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert code == 0
    assert delivered["bytes_skipped"] >= LARGE["a.safetensors"]
    assert delivered["bytes_sent"] + delivered["bytes_skipped"] == sum(f["size"] for f in delivered["files"])
    assert sums_hold(tmp_path / "copy")
    assert not (tmp_path / "copy.delivery").exists()


def test_killed_after_the_exchange_the_next_try_only_clears_up(export: Path, tmp_path: Path) -> None:
    assert deliver(tmp_path, export, to(tmp_path / "copy"))[0] == 0
    work = tmp_path / "copy.delivery"
    (work / "new").mkdir(parents=True)
    (work / "new" / "old.bin").touch()
    (work / "of-shardboard").touch()
    code, delivered = deliver(tmp_path, export, to(tmp_path / "copy"))
    assert (code, delivered["already"]) == (0, True)
    assert not work.exists()


@pytest.mark.root
def test_killed_while_it_clears_up_the_mark_is_still_there(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    make_export(copy, {"theirs": 10})
    real = shutil.rmtree

    def killed(path: Path, *rest: Any, **how: Any) -> None:
        real(path, *rest, **how)
        if Path(path).name == "new":
            raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(shutil, "rmtree", killed)
        assert deliver(tmp_path, export, to(copy), replace=True)[0] == 1
    assert names(tmp_path / "copy.delivery") == {"of-shardboard"}
    assert deliver(tmp_path, export, to(copy))[1]["already"]
    assert names(tmp_path) == {"export", "copy", "events.jsonl"}


def test_a_disk_too_small_is_refused_before_and_one_that_cannot_be_written_is_named(
    export: Path, tmp_path: Path
) -> None:
    import subprocess

    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    try:
        code, finished = deliver(tmp_path, export, to(disk / "copy"))
        assert (code, finished["reason"]) == (1, "disk_full")
        assert "bytes are needed in" in finished["text"]
        assert not any(p.is_file() and p.stat().st_size for p in disk.rglob("*"))
        shutil.rmtree(disk / "copy.delivery")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        code, finished = deliver(tmp_path, export, to(disk / "copy"))
        assert (code, finished["reason"]) == (1, "permission")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_job_file_that_says_nothing_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from training.deliver.cli import main

    (tmp_path / "job.json").write_text('{"source": "x"}')
    assert main([str(tmp_path / "job.json")]) == 2
    assert "target: field required" in capsys.readouterr().err
    assert main([str(tmp_path / "none.json")]) == 2
