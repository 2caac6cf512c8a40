"""Files from one folder to another over a real private OpenSSH server, as two nodes do it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from training.spec.folder import part_name
from training.spec.transfer import Loan
from training.transfer.place import Place

ROOT = Path(__file__).resolve().parents[2]
GENEROUS = 240.0


def run(*words: str, told: dict[str, Any] | None = None) -> str:
    argv = [sys.executable, "-m", "training", *words]
    done = subprocess.run(argv, input=json.dumps(told), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Pair:
    """`there`: the folder that is lent; `here`: the one that files come to."""

    def __init__(self, folder: Path):
        self.folder, self.there, self.here = folder, folder / "there", folder / "here"
        self.files: list[dict[str, Any]] = []

    def file(self, name: str, content: bytes) -> None:
        path = self.there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.files.append({"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})

    def lend(self, idle: float = GENEROUS, names: list[str] | None = None) -> dict[str, Any]:
        self.key = run("fetch-key", str(self.folder / "taker"))
        return json.loads(run("lend", told={
            "place": str(self.folder / "lender"), "folder": str(self.there), "address": "127.0.0.1", "key": self.key,
            "names": names or [file["name"] for file in self.files], "idle_seconds": idle,
        }))  # fmt: skip

    def fetch(self, lent: dict[str, Any]) -> dict[str, Any]:
        """Take all files, read how it ended, and see that the taker's place is gone then."""
        place = self.folder / "taker"
        run("fetch", told={
            "place": str(place), "address": "127.0.0.1", "lent": lent, "source": "node n1",
            "folder": str(self.here), "files": self.files,
        })  # fmt: skip
        wait(lambda: (place / "taken.json").exists())
        taken: dict[str, Any] = json.loads((place / "taken.json").read_text())
        assert not [path for path in place.iterdir() if path.name.startswith("key")], "no key outlives the transfer"
        (place / "done").touch()
        wait(lambda: not place.exists())
        return taken

    def wait_given_back(self) -> None:
        wait(lambda: not (self.folder / "lender").exists())


def wait(there: Callable[[], bool]) -> None:
    limit = time.monotonic() + GENEROUS
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path)
    pair.file("model/shard", os.urandom(3_000_000))
    pair.file("manifest", b"{}")
    return pair


def test_files_come_whole_and_nothing_stays_behind(pair: Pair) -> None:
    """What an earlier try left is gone on from; where that was damaged, the file begins again."""
    content = (pair.there / "model/shard").read_bytes()
    part = pair.here / "model" / part_name("shard")
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:2_000_000])
    assert pair.fetch(pair.lend()) == {"reason": None, "text": "", "bytes": 1_000_002}
    assert (pair.here / "model/shard").read_bytes() == content
    (pair.here / "model/shard").rename(part)
    part.write_bytes(b"x" * 2_000_000)
    (pair.folder / "lender" / "done").touch()
    pair.wait_given_back()
    assert pair.fetch(pair.lend())["bytes"] == 4_000_000
    assert (pair.here / "model/shard").read_bytes() == content
    assert sorted(path.name for path in pair.here.rglob("*")) == ["manifest", "model", "shard"]
    (pair.folder / "lender" / "done").touch()
    pair.wait_given_back()


def test_what_is_not_what_was_saved_or_not_lent_is_refused(pair: Pair) -> None:
    (pair.there / "model/shard").write_bytes(bytes(3_000_000))
    told = pair.fetch(pair.lend())
    assert (told["reason"], "hash differs" in told["text"]) == ("data", True)
    assert [path.name for path in pair.here.rglob("*")] == ["model"]
    (pair.folder / "lender" / "done").touch()
    pair.wait_given_back()
    told = pair.fetch(pair.lend(names=["manifest"]))
    assert (told["reason"], "not lent" in told["text"]) == ("data", True)
    (pair.folder / "lender" / "done").touch()
    pair.wait_given_back()
    with pytest.raises(ValueError, match="inside the folder"):
        Loan(place="/p", folder="/f", names=("../x",), address="::1", key="ssh-ed25519 AAAA")


def test_one_that_nobody_uses_ends_by_itself_and_another_key_is_not_let_in(pair: Pair) -> None:
    lent = pair.lend(idle=3)
    (pair.folder / "taker" / "key").unlink()
    (pair.folder / "taker" / "key.pub").unlink()
    assert run("fetch-key", str(pair.folder / "taker")) != pair.key
    told = pair.fetch(lent)
    assert (told["reason"], "Permission denied" in told["text"]) == ("network", True)
    pair.wait_given_back()


def running(word: Path | str) -> list[int]:
    """Return the processes with `word` on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [int(path.parent.name)] if str(word).encode() in path.read_bytes() else []
    return found


def test_a_server_goes_with_its_keeper_and_is_told_as_a_lost_connection(pair: Pair) -> None:
    lent = pair.lend()
    wait(lambda: len(running(pair.folder / "lender" / "sshd_config")) == 1)  # another one answers whoever looked in
    (server,) = running(pair.folder / "lender" / "sshd_config")
    (keeper,) = set(running(pair.folder / "lender")) - {server}
    os.kill(keeper, signal.SIGKILL)
    wait(lambda: not running(pair.folder / "lender" / "sshd_config"))
    told = pair.fetch(lent)
    assert told["reason"] == "network"
    assert "refused" in told["text"] or "closed" in told["text"]


def test_what_a_dead_node_left_goes_with_the_next_transfer(tmp_path: Path) -> None:
    old = tmp_path / "transfers" / "old"
    old.mkdir(parents=True)
    (old / "key").write_text("a key")
    os.utime(old, (1, 1))
    Place(str(tmp_path / "transfers" / "new")).make()
    assert [path.name for path in (tmp_path / "transfers").iterdir()] == ["new"]


def test_a_node_without_ssh_keygen_says_so_in_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "training", "fetch-key", str(tmp_path / "taker")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == "fetch-key: there is no ssh-keygen on this node: install OpenSSH's client\n"
