"""Deliveries to a hub: one commit of what is not there, to a server that speaks its protocol."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver.harness import deliver, describe, events, flip, make_export, sha256, start, text_of, until
from tests.training.deliver.hub_server import READER, TOKEN, Hub

LARGE = {"a.safetensors": 300_000, "b.safetensors": 9 << 20, "config.json": 100}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    server = Hub()
    yield server
    server.gate.release(1000)
    server.shutdown()
    server.server_close()


def to(hub: Hub, **fields: object) -> dict[str, Any]:
    return {"kind": "hub", "endpoint": hub.url, "repo": "org/mine"} | fields


def files(hub: Hub, branch: str = "main") -> dict[str, bytes]:
    found = hub.repositories["org/mine"].branches[branch][-1][1]
    return {name: data for name, data in found.items() if name != ".gitattributes"}


def local(export: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in export.iterdir()}


def test_it_works(hub: Hub, export: Path, tmp_path: Path) -> None:
    code, delivered = deliver(tmp_path, export, to(hub))
    assert code == 0, text_of(tmp_path)
    found = files(hub)
    sums = found.pop("SHA256SUMS").decode()
    assert found == local(export)
    assert all(f"  {name}\n" in sums for name in found)
    repository = hub.repositories["org/mine"]
    assert repository.private
    assert len(repository.branches["main"]) == 2  # the hub's own, and ours
    assert delivered["revision"] == repository.branches["main"][-1][0]
    assert delivered["url"] == f"{hub.url}/org/mine/tree/{delivered['revision']}"
    assert delivered["where"] == "org/mine"
    assert delivered["bytes_sent"] == sum(f["size"] for f in delivered["files"])
    phases = {e.data["phase"]: e.data for e in events(tmp_path) if e.kind == "progress"}
    assert list(phases) == ["check", "send", "verify"]
    assert all(p["done"] == p["total"] for p in phases.values())
    assert TOKEN not in text_of(tmp_path)


def test_the_same_content_makes_no_commit_and_a_changed_file_makes_one(hub: Hub, export: Path, tmp_path: Path) -> None:
    first = deliver(tmp_path, export, to(hub))[1]
    code, delivered = deliver(tmp_path, export, to(hub))
    assert (code, delivered["already"], delivered["bytes_sent"]) == (0, True, 0)
    assert delivered["revision"] == first["revision"]
    newer = make_export(tmp_path / "newer", {"config.json": 400, "model.safetensors": 1000}, seed=1)
    code, delivered = deliver(tmp_path, newer, to(hub))
    assert (code, delivered["already"], delivered["replaced"]) == (0, False, False)
    assert delivered["note"].startswith("a commit on top of others: model-00001-of-00002.safetensors")
    assert files(hub).keys() == local(export).keys() | local(newer).keys() | {"SHA256SUMS"}
    code, delivered = deliver(tmp_path, newer, to(hub), replace=True)
    assert (code, delivered["replaced"], delivered["bytes_sent"]) == (0, True, 0)
    assert files(hub).keys() == local(newer).keys() | {"SHA256SUMS"}
    assert len(hub.repositories["org/mine"].branches["main"]) == 4


def test_a_branch_of_its_own(hub: Hub, export: Path, tmp_path: Path) -> None:
    hub.make("org/mine", {"README.md": b"mine"})
    code, delivered = deliver(tmp_path, export, to(hub, branch="tuned/1"))
    assert code == 0, text_of(tmp_path)
    assert delivered["where"] == "org/mine@tuned/1"
    assert files(hub) == {"README.md": b"mine"}
    assert files(hub, "tuned/1").keys() == local(export).keys() | {"README.md", "SHA256SUMS"}


def test_killed_in_the_middle_it_sends_no_large_file_twice(hub: Hub, tmp_path: Path) -> None:
    export = make_export(tmp_path / "export", LARGE)
    hub.gate = threading.Semaphore(1)
    process = start(tmp_path, describe(tmp_path, export, to(hub)))
    until(lambda: len(hub.begun) == 2 or process.poll() is not None)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert len(hub.uploads) == 1
    hub.gate.release(1000)
    assert files(hub) == {}
    code, delivered = deliver(tmp_path, export, to(hub))
    assert code == 0, text_of(tmp_path)
    assert delivered["bytes_skipped"] >= LARGE["a.safetensors"]
    assert delivered["bytes_sent"] + delivered["bytes_skipped"] == sum(f["size"] for f in delivered["files"])
    assert hub.uploads.count(sha256(export / "a.safetensors")) == 1
    assert files(hub)["b.safetensors"] == (export / "b.safetensors").read_bytes()


def test_a_source_changed_since_its_proof_sends_nothing(hub: Hub, export: Path, tmp_path: Path) -> None:
    flip(export / "model-00002-of-00002.safetensors")
    code, finished = deliver(tmp_path, export, to(hub))
    assert (code, finished["reason"]) == (1, "data")
    assert hub.repositories == {}
    assert hub.uploads == []


def test_a_public_repository_is_not_written_to_by_a_private_delivery(hub: Hub, export: Path, tmp_path: Path) -> None:
    hub.make("org/mine", private=False)
    code, finished = deliver(tmp_path, export, to(hub))
    assert (code, finished["reason"]) == (1, "configuration")
    assert finished["text"].startswith("target.private: org/mine is there and public")
    assert files(hub) == {}
    assert deliver(tmp_path, export, to(hub, private=False))[0] == 0


def test_endings_have_a_reason_and_a_way_out_and_no_secret(
    hub: Hub, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(**fields: object) -> tuple[str, str]:
        code, finished = deliver(tmp_path, export, to(hub, **fields))
        assert code == 1
        return finished["reason"], finished["text"]

    monkeypatch.setenv("HF_TOKEN", READER)
    reason, text = said()
    assert (reason, "Give the token write access there." in text) == ("permission", True)
    monkeypatch.setenv("HF_TOKEN", "hf_wrongwrongwrong")
    reason, text = said()
    assert (reason, text.startswith("HF_TOKEN: ")) == ("credentials", True)
    monkeypatch.delenv("HF_TOKEN")
    assert said()[0] == "credentials"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    reason, text = said(endpoint="http://127.0.0.1:9")
    assert (reason, "http://127.0.0.1:9 can't be reached" in text) == ("network", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    reason, text = said()
    assert (reason, text.startswith("HF_HUB_OFFLINE: ")) == ("configuration", True)
    assert all(secret not in text_of(tmp_path) for secret in (TOKEN, READER, "hf_wrongwrongwrong"))
    assert hub.uploads == []


def test_the_environments_hub_is_used_and_held_to_the_same_rules(
    hub: Hub, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    assert deliver(tmp_path, export, to(hub, endpoint=""))[0] == 0
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example.org")
    code, finished = deliver(tmp_path, export, to(hub, endpoint=""))
    assert (code, finished["text"].startswith("HF_ENDPOINT: plain http")) == (1, True)
