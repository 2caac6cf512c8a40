"""python -m training checkpoint: what is listed, what goes, what stays and why, beside a training that rotates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.training.folders import file_names, part, whole
from training.pidfile import PidFile
from training.saving import checkpoints, removal, shelf
from training.saving.cli import main
from training.spec.folder import JobFolder, Scratch, held_by, hold_name

LIGHT = """
import sys
from training.__main__ import command
status = command("checkpoint")(sys.argv[1:])
print(*sorted({"torch", "transformers", "numpy"} & sys.modules.keys()))
sys.exit(status)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three whole checkpoints, and a torn one that may be being written."""
    found = tmp_path / "1" / "checkpoints"
    for step in (2, 4, 6):
        whole(found, step)
    part(found, 8, 0, manifest=False)
    return found


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str | Path, status: int = 0) -> Any:
        found = main([str(word) for word in words])
        out = capsys.readouterr().out
        answer = json.loads(out.splitlines()[-1]) if out else {}
        assert found == (3 if answer.get("refused") else status)
        return answer

    return run


def test_it_needs_no_torch(root: Path) -> None:
    command = [sys.executable, "-c", LIGHT, "list", str(root)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    answer, heavy = done.stdout.splitlines()
    assert [entry["step"] for entry in json.loads(answer)["checkpoints"]] == [2, 4, 6, 8]
    assert not heavy


def test_a_list_says_what_is_whole_and_what_keeps_it(root: Path, told: Any) -> None:
    (root / "checkpoint-4" / hold_name(7)).touch()
    (root / "checkpoint-4" / "rng_state_1.pth").write_text("short")
    told("pin", root / "checkpoint-2")
    two, four, six, eight = told("list", root)["checkpoints"]
    assert (two["name"], two["complete"], two["faults"], two["pinned"], two["held"]) == (
        "checkpoint-2",
        True,
        [],
        1,
        [],
    )
    assert (two["parts"], two["nodes"], two["world_size"], two["save"]) == ([0, 1], 2, 2, "s")
    folder = root / "checkpoint-2"
    assert two["bytes"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert two["written_at"] == (folder / "manifest-1.json").stat().st_mtime
    assert (four["complete"], four["parts"], four["held"]) == (False, [0], [7])
    assert four["faults"] == ["rng_state_1.pth has 5 bytes in place of 20"]
    assert six["complete"]
    assert (eight["complete"], eight["faults"]) == (False, ["it has no manifest, so its save did not end"])
    assert (eight["nodes"], eight["written_at"]) == (0, 0)


def test_a_private_disk_lists_its_own_part(tmp_path: Path) -> None:
    part(tmp_path, 2, 1)
    (entry,) = shelf.listed(tmp_path)
    assert (entry.complete, entry.parts, entry.nodes, entry.faults) == (
        False,
        [1],
        2,
        ["the part of node 0 is missing"],
    )


def test_a_changed_byte_is_found_where_every_byte_is_asked_for(root: Path) -> None:
    shard = root / "checkpoint-2" / "rng_state_0.pth"
    shard.write_text("X" * shard.stat().st_size)
    assert shelf.listed(root)[0].complete
    assert shelf.listed(root, verify=True)[0].faults == ["rng_state_0.pth was changed after its save"]


def test_what_is_deleted_is_gone_and_its_bytes_are_told(root: Path, told: Any) -> None:
    there = removal.size(root / "checkpoint-2")
    assert there
    answer = {"done": ["checkpoint-2"], "absent": [], "refused": [], "freed": there}
    assert told("delete", root / "checkpoint-2") == answer
    assert told("delete", root / "checkpoint-2") == answer | {"absent": ["checkpoint-2"], "freed": 0}
    assert sorted(os.listdir(root)) == ["checkpoint-4", "checkpoint-6", "checkpoint-8"]


def test_what_is_pinned_or_held_is_refused_until_it_is_let_go(root: Path, told: Any) -> None:
    two, four = root / "checkpoint-2", root / "checkpoint-4"
    told("pin", two)
    (four / hold_name(7)).touch()
    answer = told("delete", two, four)
    assert (answer["done"], answer["freed"]) == ([], 0)
    assert [(r["name"], r["reason"]) for r in answer["refused"]] == [
        ("checkpoint-2", "it is pinned"),
        ("checkpoint-4", "it is held by export 7"),
    ]
    assert told("unpin", two)["done"] == told("unpin", two)["done"] == ["checkpoint-2"]
    assert told("delete", two)["done"] == ["checkpoint-2"]


def test_what_training_may_need_is_refused_until_it_is_over(root: Path, told: Any) -> None:
    newest = [root / f"checkpoint-{step}" for step in (6, 8)]
    answer = told("delete", *newest)
    assert [r["reason"] for r in answer["refused"]] == ["training may go on, and no complete one is newer"] * 2
    assert all("--ended" in r["fix"] for r in answer["refused"])
    assert told("delete", *newest, "--ended")["done"] == ["checkpoint-6", "checkpoint-8"]
    assert checkpoints.steps(root) == [2, 4]


def test_what_an_export_brought_makes_a_checkpoint_no_less_whole(tmp_path: Path, told: Any) -> None:
    for step in (2, 4):
        whole(tmp_path, step)
    (tmp_path / "checkpoint-4" / "rng_state_1.pth").unlink()  # of the other node's part what an export reads is here
    assert told("delete", tmp_path / "checkpoint-2")["done"] == ["checkpoint-2"]
    (tmp_path / "checkpoint-4" / "pytorch_model_fsdp_0" / "__1_0.distcp").unlink()  # damage, on a disk of both
    whole(tmp_path, 2)
    assert told("delete", tmp_path / "checkpoint-2")["refused"]


def test_a_living_supervisor_is_believed_more_than_the_caller(tmp_path: Path, told: Any) -> None:
    scratch = Scratch(tmp_path)  # type: ignore[arg-type]
    job = JobFolder(scratch.job(1, 1, 0).path)
    Path(job.path).mkdir(parents=True)
    root = Path(scratch.checkpoints(1, 1))
    whole(root, 2)
    lock = PidFile(job).lock()
    assert lock is not None
    PidFile(job).write(lock)
    try:
        assert not told("delete", root / "checkpoint-2", "--ended")["done"]
    finally:
        os.close(lock)
    Path(job.pid).write_text("")
    assert told("delete", root / "checkpoint-2", "--ended")["done"] == ["checkpoint-2"]


def test_one_that_is_not_there_can_not_be_pinned(root: Path, told: Any) -> None:
    (refusal,) = told("pin", root / "checkpoint-3")["refused"]
    assert (refusal["name"], refusal["reason"]) == ("checkpoint-3", "it is not there")
    assert not (root / "checkpoint-3").exists()


def test_what_never_was_is_named_apart_from_what_was_deleted(root: Path, told: Any) -> None:
    answer = told("delete", root / "checkpoint-2", root / "checkpoint-99")
    assert (answer["done"], answer["absent"]) == (["checkpoint-2", "checkpoint-99"], ["checkpoint-99"])
    assert told("delete", root / "checkpoint-2")["absent"] == ["checkpoint-2"]


@pytest.mark.parametrize("way", ["checkpoint-2/../checkpoint-2", "../checkpoints/checkpoint-2", "link/checkpoint-2"])
def test_however_its_path_is_written_all_of_it_goes(root: Path, told: Any, way: str) -> None:
    (root / "link").symlink_to(root)
    assert told("delete", f"{root}/{way}")["freed"] > 0
    assert sorted(path.name for path in root.iterdir()) == ["checkpoint-4", "checkpoint-6", "checkpoint-8", "link"]


def test_a_linked_checkpoint_stays_and_is_told(root: Path, told: Any, tmp_path: Path) -> None:
    (root / "checkpoint-2").rename(tmp_path / "elsewhere")
    (root / "checkpoint-2").symlink_to(tmp_path / "elsewhere")
    answer = told("delete", root / "checkpoint-2")
    assert ([one["reason"] for one in answer["refused"]], answer["done"]) == (["it is a link"], [])
    assert removal.delete(root / "checkpoint-2") == 0, "a training that rotates goes on"
    assert checkpoints.steps(root) == [2, 4, 6, 8]
    (root / f"{removal.DELETED}checkpoint-2-00000000").symlink_to(tmp_path / "elsewhere")  # as it was left once
    removal.delete(root / "checkpoint-2", whatever_keeps_it=True)  # a new one is about to be saved there
    removal.delete(root / "checkpoint-2")
    assert sorted(path.name for path in root.iterdir()) == ["checkpoint-4", "checkpoint-6", "checkpoint-8"]
    assert (tmp_path / "elsewhere" / "manifest-0.json").is_file()


def test_only_a_folder_can_be_listed(root: Path, told: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "file").touch()
    for name, why in (("file", "is no folder"), ("nothing", "is not there")):
        assert main(["list", str(root / name)]) == 1
        assert why in capsys.readouterr().err
    assert main(["list", str(root / "file"), "--if-there"]) == 1
    capsys.readouterr()
    assert told("list", root / "nothing", "--if-there") == {"checkpoints": []}


@pytest.mark.parametrize("name", ["", "..", "exports", "checkpoint-2x", ".deleted-checkpoint-2"])
def test_nothing_else_is_touched(root: Path, told: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["delete", str(root / "checkpoint-2"), str(root / name)]) == 1
    assert "is no checkpoint" in capsys.readouterr().err
    assert checkpoints.steps(root) == [2, 4, 6, 8]


def test_a_hold_put_at_the_last_moment_keeps_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hold comes between the look and the rename: it is found in the folder that nobody can reach any more."""
    folder, rename = root / "checkpoint-2", os.replace

    def late(old: Path, new: Path) -> None:
        if old == folder:
            (folder / hold_name(7)).touch()
        rename(old, new)

    monkeypatch.setattr(os, "replace", late)
    freed, gone, refused = shelf.delete([folder])
    assert (freed, gone, [r.reason for r in refused]) == (0, [], ["it is held by export 7"])
    assert file_names(folder) == file_names(root / "checkpoint-4")
    assert sorted(os.listdir(root)) == ["checkpoint-2", "checkpoint-4", "checkpoint-6", "checkpoint-8"]


def test_what_a_killed_delete_left_goes_with_the_next(root: Path) -> None:
    os.replace(root / "checkpoint-2", root / ".deleted-checkpoint-2-0123abcd")
    assert removal.delete(root / "checkpoint-2") > 0
    assert not list(root.glob(".deleted-*"))


def test_many_may_delete_at_once(tmp_path: Path) -> None:
    """A rotation and two persons: each folder goes once, nobody fails, and the bytes are not lost count of."""
    for step in range(1, 31):
        whole(tmp_path, step)
    errors: list[BaseException] = []

    def all_of_them() -> None:
        try:
            for step in range(1, 31):
                removal.delete(tmp_path / f"checkpoint-{step}")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=all_of_them) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert not list(tmp_path.iterdir())


def test_names_of_holds_are_read_back() -> None:
    assert held_by(hold_name(12)) == 12
    assert [held_by(name) for name in (".hold-", ".hold-x", "hold-3", ".hold-²")] == [None] * 4
