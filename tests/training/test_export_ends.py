"""Exports that end in the middle, and proofs that don't hold."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.namespaces import own_mounts
from tests.training import sharded
from tests.training.tokens import TAGGED
from training.export import cli, proof, prove
from training.export.outcome import Failure
from training.spec.events import Event, parse
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks
PATIENCE = 120  # seconds for a condition that comes in a few


def events(job: ExportJob) -> list[Event]:
    path = Path(job.events)
    return [parse(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def start(job: ExportJob, folder: Path) -> subprocess.Popen[bytes]:
    """Start the command in a process group of its own, as the supervisor does."""
    (folder / "recipe.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "training", "export", str(folder / "recipe.json")]
    return subprocess.Popen(command, cwd=sharded.ROOT, start_new_session=True)


def until_proving(job: ExportJob, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not any(e.data.get("phase") == "prove" for e in events(job)):
        assert process.poll() is None, "the export ended before its proof"
        assert time.monotonic() < end, "the proof never began"
        time.sleep(0.05)


def test_a_stop_leaves_nothing(export_job, tmp_path):
    job = export_job(tmp_path, "tied")
    process = start(job, tmp_path)
    until_proving(job, process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 1
    assert list((tmp_path / "out").iterdir()) == []
    assert events(job)[-1].data["reason"] == "stopped_unsaved"


def test_a_request_to_stop_is_heeded(export_job, tmp_path):
    job = export_job(tmp_path, "tied")
    process = start(job, tmp_path)
    until_proving(job, process)
    (tmp_path / "stop").touch()
    assert process.wait(PATIENCE) == 1
    assert list((tmp_path / "out").iterdir()) == []
    assert (events(job)[-1].data["reason"], events(job)[-1].data["text"]) == ("stopped_unsaved", "stopped on request")


def test_killed_and_started_again_it_starts_over(export_job, tmp_path):
    job = export_job(tmp_path, "tied")
    process = start(job, tmp_path)
    until_proving(job, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["model.partial"]

    assert start(job, tmp_path).wait(PATIENCE) == 0
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["model"]
    told = events(job)
    assert [e.seq for e in told] == list(range(1, len(told) + 1))
    assert told[-1].data["reason"] == "completed"


FILL = """
set -e
mount -t tmpfs -o size=200m,nr_inodes={inodes} tmpfs {mount}
status=0
{python} -m training export {recipe} || status=$?
ls -A {mount}/out > {listing}
exit $status
"""


@pytest.mark.root
@pytest.mark.parametrize("inodes", [4, 8], ids=["at the tokenizer", "at the weights"])
def test_a_disk_that_fills_up_midway_leaves_nothing(export_job, tmp_path, inodes):
    """A file system that has bytes left and takes no more files: what the plan could not foresee."""
    mount = tmp_path / "mount"
    mount.mkdir()
    job = export_job(tmp_path, "tied").model_copy(update={"out": str(mount / "out" / "model")})
    (tmp_path / "recipe.json").write_text(job.model_dump_json())
    script = FILL.format(
        inodes=inodes, mount=mount, python=sys.executable, recipe=tmp_path / "recipe.json", listing=tmp_path / "left"
    )
    command = [*own_mounts(), "bash", "-c", script]
    run = subprocess.run(command, cwd=sharded.ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    assert events(job)[-1].data["reason"] == "disk_full", run.stderr
    assert (tmp_path / "left").read_text() == ""


@pytest.fixture(scope="module")
def exported(export_job, tmp_path_factory):
    """A finished float32 export; tests spoil a copy of it."""
    job = export_job(tmp_path_factory.mktemp("exported"), "untied", dtype="float32")
    assert cli.run(job) == 0
    return job


def spoil(folder: Path, change: str) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    match change:
        case "value":
            tensors["model.layers.1.mlp.up_proj.weight"][0, 0] += 1
        case "name":
            tensors["model.layers.1.mlp.upp.weight"] = tensors.pop("model.layers.1.mlp.up_proj.weight")
        case "shape":
            tensors["model.norm.weight"] = torch.ones(63)
        case "dtype":
            tensors = {name: tensor.half() for name, tensor in tensors.items()}
        case "infinite":
            tensors["model.norm.weight"][:] = torch.inf
    save_file(tensors, path, metadata={"format": "pt"})


def judged(job: ExportJob, folder: Path, scratch: Path, *, size: int = 1) -> dict[str, Any]:
    """Run the proof's own program here, where torch is loaded already, and return its result."""
    request = {"job": job.model_dump(mode="json"), "folder": str(folder), "bytes": size, "memory": 1 << 40}
    (scratch / "request.json").write_text(json.dumps(request))
    assert prove.main([str(scratch / "request.json"), str(scratch / "result.json")]) == 0
    result: dict[str, Any] = json.loads((scratch / "result.json").read_text())
    return result


def failed(result: dict[str, Any]) -> str:
    return next(check["name"] for check in result["checks"] if not check["passed"])


@pytest.mark.parametrize(
    ("change", "check"),
    [("value", "compare"), ("name", "load"), ("shape", "load"), ("dtype", "compare"), ("infinite", "forward")],
)
def test_the_proof_finds(exported, tmp_path, change, check):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, change)
    assert failed(judged(exported, folder, tmp_path)) == check


def test_the_proof_finds_another_dtype_in_config_and_files(exported, tmp_path):
    result = judged(exported.model_copy(update={"dtype": "bfloat16"}), Path(exported.out), tmp_path)
    assert failed(result) == "load"


def test_the_proof_finds_another_tokenizer(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    result = judged(exported, folder, tmp_path)
    assert failed(result) == "tokenizer"
    assert "differs from the base model's in chat" in result["checks"][-1]["detail"]


@pytest.mark.parametrize("template", [TAGGED, "{{ raise_exception('begins with a system turn') }}"])
def test_the_proof_finds_the_bases_template_in_place_of_the_trained_one(exported, tmp_path, template):
    result = judged(exported.model_copy(update={"template": template}), Path(exported.out), tmp_path)
    assert failed(result) == "tokenizer"
    folder = shutil.copytree(exported.out, tmp_path / "right")
    (folder / "chat_template.jinja").write_text(template)
    assert all(
        c["passed"] for c in judged(exported.model_copy(update={"template": template}), folder, tmp_path)["checks"]
    )


def test_a_model_larger_than_memory_is_not_loaded_and_the_proof_says_so(exported, tmp_path):
    result = judged(exported, Path(exported.out), tmp_path, size=1 << 50)
    assert "takes 1,125,899,906,842,624 bytes of memory" in result["not_compared"]
    assert result["largest_difference"] is None
    assert [(c["name"], c["passed"]) for c in result["checks"]] == [
        ("headers", True), ("contents", True), ("tokenizer", True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "check"), [("name", "headers"), ("shape", "headers"), ("dtype", "headers"), ("value", "contents")]
)
def test_without_loading_the_proof_finds(exported, tmp_path, change, check):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, change)
    assert failed(judged(exported, folder, tmp_path, size=1 << 50)) == check


def test_what_the_fresh_process_found_ends_the_export(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    spoil(folder, "value")
    with pytest.raises(Failure, match=r"^compare: largest difference") as caught:
        proof.prove(exported, folder, 1)
    assert caught.value.reason == "proof"


def test_a_fresh_process_that_ends_early_ends_the_export(exported, tmp_path):
    folder = shutil.copytree(exported.out, tmp_path / "spoilt")
    (folder / "config.json").unlink()
    with pytest.raises(Failure, match=r"^load: the fresh process ended with status 1") as caught:
        proof.prove(exported, folder, 1)
    assert caught.value.reason == "proof"
