"""What an export refuses, by name, before it writes anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training import sharded
from training.export import cli, manifest
from training.export.manifest import MODEL_FOLDER
from training.export.opened import open_checkpoint
from training.journal import Journal
from training.spec.events import Event, Kind, parse
from training.spec.job import ExportJob

pytestmark = pytest.mark.ranks


@pytest.fixture
def job(export_job, sharded_checkpoints, tmp_path):
    """An export of an own copy of the tied checkpoint and its base, free to damage."""
    source = shutil.copytree(sharded_checkpoints / "tied", tmp_path / "source")
    made: ExportJob = export_job(tmp_path, "tied")
    return made.model_copy(update={"checkpoint": str(source / "checkpoint-7"), "model": str(source / "base")})


def refused(job: ExportJob) -> tuple[str, str]:
    """Run the export, see that it left nothing, and return its reason and text."""
    assert cli.run(job) == 1
    assert list(Path(job.out).parent.glob("model*")) == []
    last = events(job)[-1]
    assert last.kind == Kind.FINISHED
    return last.data["reason"], last.data["text"]


def events(job: ExportJob) -> list[Event]:
    return [parse(line) for line in Path(job.events).read_bytes().splitlines()]


def shard(job: ExportJob, name: str = "__1_0.distcp") -> Path:
    return Path(job.checkpoint) / MODEL_FOLDER / name


@pytest.mark.parametrize("name", ["__1_0.distcp", ".metadata"])
def test_it_refuses_a_flipped_bit(job, name):
    data = bytearray(shard(job, name).read_bytes())
    data[len(data) // 2] ^= 1
    shard(job, name).write_bytes(data)
    reason, text = refused(job)
    assert (reason, f"{MODEL_FOLDER}/{name}" in text, "sha256" in text) == ("data", True, True)


@pytest.mark.parametrize("gone", ["", MODEL_FOLDER])
def test_it_says_that_a_checkpoint_was_rotated_away(job, gone, monkeypatch):
    """The files go after the sizes were seen, before their contents are read."""
    look = manifest.size_problems

    def look_and_lose(folder, files):
        found = look(folder, files)
        if any(name.startswith(MODEL_FOLDER) for name in files):
            shutil.rmtree(Path(job.checkpoint) / gone)
        return found

    monkeypatch.setattr(manifest, "size_problems", look_and_lose)
    reason, text = refused(job)
    assert (reason, "rotated away" in text, "Export a newer checkpoint" in text) == ("data", True, True)


def test_it_says_that_a_checkpoint_is_not_there(job):
    reason, text = refused(job.model_copy(update={"checkpoint": job.checkpoint + "0"}))
    assert (reason, "rotated away" in text) == ("data", True)


def test_it_refuses_a_cut_shard(job):
    size = shard(job).stat().st_size
    with shard(job).open("r+b") as file:
        file.truncate(size - 1)
    reason, text = refused(job)
    assert reason == "data"
    assert f"{MODEL_FOLDER}/__1_0.distcp: has {size - 1} bytes, {size} were written" in text


def test_it_refuses_a_missing_shard(job):
    shard(job).unlink()
    reason, text = refused(job)
    assert reason == "data"
    assert f"{MODEL_FOLDER}/__1_0.distcp: is missing" in text


@pytest.mark.parametrize("rank", [0, 1])
def test_it_refuses_a_missing_manifest(job, rank):
    (Path(job.checkpoint) / f"manifest-{rank}.json").unlink()
    reason, text = refused(job)
    assert reason == "data"
    assert f"manifest-{rank}.json: is missing" in text


def test_it_refuses_parts_of_two_saves(job):
    path = Path(job.checkpoint) / "manifest-1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"step": 8}))
    reason, text = refused(job)
    assert reason == "data"
    assert "manifest-1.json: belongs to another save" in text


def test_it_refuses_a_manifest_that_points_outside(job):
    path = Path(job.checkpoint) / "manifest-1.json"
    raw = json.loads(path.read_text())
    raw["files"]["../../secret"] = {"size": 1, "sha256": "0" * 64}
    path.write_text(json.dumps(raw))
    reason, text = refused(job)
    assert (reason, "outside of the checkpoint" in text) == ("data", True)


def test_it_refuses_a_pickle_with_code_although_signed(job, tmp_path):
    """A metadata file that calls os.system, with a manifest made for it."""
    proof = tmp_path / "ran"
    shard(job, ".metadata").write_bytes(f"cos\nsystem\n(S'touch {proof}'\ntR.".encode())
    sharded.sign(Path(job.checkpoint), sharded.RANKS)
    reason, text = refused(job)
    assert (reason, "os.system" in text) == ("data", True)
    assert not proof.exists()


def test_another_vocabulary_is_refused_before_writing(job):
    path = Path(job.model) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 5000}))
    reason, text = refused(job)
    assert reason == "configuration"
    assert "model.embed_tokens.weight is [4097, 64] in the checkpoint and [5000, 64] by the config" in text


def test_another_depth_is_refused_before_writing(job):
    path = Path(job.model) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": 3}))
    reason, text = refused(job)
    assert reason == "configuration"
    assert "lacks tensors" in text
    assert "model.layers.2." in text


def test_a_base_without_tokenizer_is_refused(job):
    for path in Path(job.model).glob("tokenizer*"):
        path.unlink()
    reason, text = refused(job)
    assert (reason, "no tokenizer can be read" in text) == ("configuration", True)


def test_an_unknown_base_is_refused(job, tmp_path):
    reason, text = refused(job.model_copy(update={"model": str(tmp_path / "nowhere")}))
    assert (reason, "no config can be read" in text) == ("configuration", True)


def test_ties_that_came_apart_are_refused(job, sharded_checkpoints):
    """The untied checkpoint with a config that says tied: storing one of the two would lose the other."""
    reason, text = refused(job.model_copy(update={"checkpoint": str(sharded_checkpoints / "untied" / "checkpoint-7")}))
    assert (reason, "ties lm_head.weight to model.embed_tokens.weight" in text) == ("proof", True)


@pytest.mark.parametrize(
    ("value", "dtype", "why"),
    [(1e6, "float16", "too large for torch.float16"), (float("nan"), "bfloat16", "not finite")],
)
def test_values_that_are_not_finite_are_refused(job, sharded_checkpoints, value, dtype, why):
    import torch.distributed.checkpoint as dcp

    tensors = load_file(sharded_checkpoints / "tied" / "truth.safetensors")
    tensors["model.norm.weight"][3] = value
    shutil.rmtree(shard(job).parent)
    dcp.save({"model": tensors}, checkpoint_id=shard(job).parent, no_dist=True)
    sharded.sign(Path(job.checkpoint), sharded.RANKS)
    reason, text = refused(job.model_copy(update={"dtype": dtype}))
    assert (reason, "model.norm.weight" in text, why in text) == ("proof", True, True)


def test_a_result_in_the_place_is_never_overwritten(job):
    Path(job.out).mkdir(parents=True)
    (Path(job.out) / "mine").write_text("kept")
    assert cli.run(job) == 1
    assert (Path(job.out) / "mine").read_text() == "kept"
    assert events(job)[-1].data["reason"] == "configuration"


def test_of_files_that_an_export_does_not_read_a_damaged_one_is_a_warning_and_a_missing_one_nothing(job):
    unread = Path(job.checkpoint) / "scheduler.pt"
    with unread.open("ab") as file:
        file.write(b"x")
    assert open_checkpoint(Path(job.checkpoint), Journal(job.events)).step == 7
    (warning,) = [event for event in events(job) if event.kind == Kind.WARNING]
    assert "scheduler.pt has" in warning.data["text"]
    unread.unlink()  # it stayed on its own node
    assert open_checkpoint(Path(job.checkpoint), Journal(job.events)).step == 7
    assert [event.kind for event in events(job)].count(Kind.WARNING) == 1


def test_it_uses_the_name_given_for_a_wrong_tensor(job, sharded_checkpoints):
    """A save whose names have a wrapper's prefix left in them."""
    import torch.distributed.checkpoint as dcp

    tensors = load_file(sharded_checkpoints / "tied" / "truth.safetensors")
    wrapped = {f"_orig_mod.{name}": torch.clone(tensor) for name, tensor in tensors.items()}
    shutil.rmtree(shard(job).parent)
    dcp.save({"model": wrapped}, checkpoint_id=shard(job).parent, no_dist=True)
    sharded.sign(Path(job.checkpoint), sharded.RANKS)
    reason, text = refused(job)
    assert (reason, "_orig_mod.lm_head.weight" in text or "_orig_mod.model" in text) == ("configuration", True)
