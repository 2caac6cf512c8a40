"""What is wanted of an interpreter, chosen among those found, and what is said of a step that failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from training.provision import background
from training.provision.steps import hide, secrets_in
from training.spec.provision import Found, Wanted, choose, files, way_out
from training.spec.venvfolder import VenvFolder

ROOT = Path(__file__).parents[2]
FOUND = [
    Found("/usr/bin/python3.9", (3, 9, 2), True),
    Found("/usr/bin/python3.11", (3, 11, 2), True),
    Found("/usr/bin/python3.13", (3, 13, 1), False),
    Found("/opt/p/bin/python3", (3, 12, 4), True),
    Found("/opt/new/bin/python3", (3, 15, 0), True),
]


@pytest.mark.parametrize(
    ("wanted", "like", "chosen"),
    [
        ("", None, "/opt/p/bin/python3"),
        ("", (3, 11), "/usr/bin/python3.11"),
        ("", (3, 13), "/opt/p/bin/python3"),
        ("/usr/bin/python3.9", None, "/usr/bin/python3.9"),
        ("/nowhere", None, None),
    ],
)
def test_one_is_chosen(wanted: str, like: tuple[int, int] | None, chosen: str | None) -> None:
    found = choose(FOUND, wanted, like)
    assert (found and found.path) == chosen


def test_the_same_wish_is_the_same_folder_wherever_it_is_fetched_from() -> None:
    wish = Wanted("/p", "torch==1\n", "", env={"PIP_INDEX_URL": "https://a"})
    assert wish.digest == Wanted("/p", "torch==1\n", "", env={"PIP_INDEX_URL": "https://b"}).digest
    assert len({wish.digest, Wanted("/q", "torch==1\n", "").digest, Wanted("/p", "torch==1\n", "", "f\n").digest}) == 3
    put = files(wish, VenvFolder(PurePosixPath("/s/venvs/d")))
    assert "https://a" not in "".join(put.values())


@pytest.mark.parametrize(
    ("step", "line", "way"),
    [
        ("environment", "The virtual environment was not created: ensurepip is not available", "python3-venv"),
        ("packages", "OSError: [Errno 28] No space left on device", "Free space"),
        ("packages", "NewConnectionError: Temporary failure in name resolution", "SHARDBOARD_PIP_INDEX_URL"),
        (
            "packages",
            "ERROR: Cannot install peft: these package versions have conflicting dependencies.",
            "has no such",
        ),
        ("GPU packages", "OSError: CUDA_HOME environment variable is not set", "CUDA compiler"),
        ("packages", "something else", "try again"),
    ],
)
def test_a_failure_has_a_way_out(step: str, line: str, way: str) -> None:
    assert way in way_out(step, ["Collecting torch", line])


def test_no_line_shows_a_password() -> None:
    hidden = secrets_in({"PIP_INDEX_URL": "https://someone:s3cret@host/simple", "NO_PROXY": "a,b"})
    assert hide("GET https://someone:s3cret@host/simple: 401", hidden) == "GET https://****:****@host/simple: 401"


@pytest.fixture
def folder(tmp_path: Path) -> VenvFolder:
    """Of an interpreter whose making waits in its second step, for as long as there is no file `go`."""
    folder = VenvFolder(PurePosixPath(tmp_path / "venvs" / "d"))
    Path(folder.making).mkdir(parents=True)
    wait = f"echo waiting; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit $(cat {tmp_path}/go)"
    steps = [{"name": "one", "argv": ["mkdir", "-p", str(folder.path)]}, {"name": "two", "argv": ["sh", "-c", wait]}]
    Path(folder.order).write_text(json.dumps({"steps": steps}))
    Path(folder.env).write_text("PIP_INDEX_URL=https://x\n")
    return folder


def until(folder: VenvFolder, **what: object) -> dict[str, Any]:
    limit = time.monotonic() + 60
    while not what.items() <= (said := background.status(folder)).items():
        assert time.monotonic() < limit, said
        time.sleep(0.02)
    return said


def test_it_is_done_once_and_killed_begins_anew(folder: VenvFolder, tmp_path: Path) -> None:
    assert background.status(folder)["state"] == "absent"
    background.start(folder)
    until(folder, state="running", step="two", line="waiting", number=2, of=2)
    process = int(Path(folder.lock).read_text())
    background.start(folder)
    assert int(Path(folder.lock).read_text()) == process, "started again it is the same one"
    os.killpg(process, signal.SIGKILL)
    until(folder, state="gone")
    background.start(folder)
    (tmp_path / "go").write_text("7")
    assert until(folder, state="ended")["exit"]["code"] == 7
    assert not Path(folder.complete).exists()
    (tmp_path / "go").write_text("0")
    background.start(folder)
    assert until(folder, state="ended")["exit"]["code"] == 0
    assert (Path(folder.complete).exists(), Path(folder.env).exists()) == (True, False)
    Path(folder.log).write_text("untouched")
    assert background.start(folder)["state"] == "ended"
    assert Path(folder.log).read_text() == "untouched", "what is whole is left alone"


def test_stop_ends_all_of_it(folder: VenvFolder) -> None:
    background.start(folder)
    until(folder, line="waiting")
    assert background.stop(folder)["state"] == "gone"
    assert background.stop(folder)["state"] == "gone"


def test_it_runs_on_a_bare_python() -> None:
    """No package is there, and none of ours that needs one."""
    words = ["-S", "-m", "training", "provision", "status", "/nowhere/venv"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert '"state": "absent"' in done.stdout
