"""What an export will be is told before a byte of it is written, and so is every reason why it can't be."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from training.export import estimate, probe
from training.export.manifest import MODEL_FOLDER
from training.export.numbers import of_base
from training.export.planning import Planner, main
from training.spec.exportplan import ExportPlan
from training.spec.job import ExportJob, PlanJob
from training.spec.lint import Refused

pytestmark = pytest.mark.ranks
MANIFEST = "manifest-1.json"
SHARD = f"{MODEL_FOLDER}/__1_0.distcp"


@pytest.fixture
def job(export_job, sharded_checkpoints, tmp_path):
    """An export of an own copy of the untied checkpoint and its base, free to damage."""
    source = shutil.copytree(sharded_checkpoints / "untied", tmp_path / "source")
    made: ExportJob = export_job(tmp_path, "untied", dtype="base", max_shard_bytes=1_000_000)
    return made.model_copy(update={"checkpoint": str(source / "checkpoint-7"), "model": str(source / "base")})


def plan(job: ExportJob, coming: dict[str, int] | None = None) -> ExportPlan:
    made = Planner(job, coming, probe=False).plan()
    assert not Path(job.out).parent.exists(), "nothing is written"
    return made


def why(job: ExportJob, coming: dict[str, int] | None = None) -> list[tuple[str, str]]:
    return [(found.field, str(found.reason)) for found in plan(job, coming).problems]


def test_it_works(job, sharded_checkpoints):
    """What is foretold of the files is held against an export in test_export_whole."""
    told = Planner(job).plan()
    assert (told.works, told.problems, told.notes) == (True, (), ())
    assert (told.writing.asked, told.writing.dtype) == ("base", "bfloat16")
    truth = load_file(sharded_checkpoints / "untied" / "truth.safetensors")
    numbers = sum(tensor.numel() for tensor in truth.values())
    assert told.writing.sizes == {"bfloat16": 2 * numbers, "float16": 2 * numbers, "float32": 4 * numbers}
    assert told.writing.tensors == len(truth)
    assert told.reading.bytes == sum(path.stat().st_size for path in Path(job.checkpoint, MODEL_FOLDER).iterdir())
    assert told.reading.step == 7
    assert min(told.rates.read, told.rates.write, told.seconds.stream, told.seconds.prove) > 0
    assert told.memory.whole
    assert told.disk.needed < told.disk.free
    assert told.disk.after == told.disk.free - told.disk.needed


def test_the_command_prints_json_or_a_table_and_its_status_says_whether_it_can_work(job, tmp_path, capsys, monkeypatch):
    (tmp_path / "job.json").write_text(job.model_dump_json())
    assert main([str(tmp_path / "job.json"), "--no-probe"]) == 0
    assert ExportPlan.model_validate_json(capsys.readouterr().out.splitlines()[-1]).works
    asked = PlanJob(job=job, env={"PLANNED_WITH": "this"})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(asked.model_dump_json().encode())))
    monkeypatch.delenv("PLANNED_WITH", raising=False)
    assert main(["-", "--no-probe"]) == 0
    assert os.environ.pop("PLANNED_WITH") == "this"
    assert ExportPlan.model_validate_json(capsys.readouterr().out.splitlines()[-1]).works
    Path(job.checkpoint, SHARD).unlink()
    assert main([str(tmp_path / "job.json"), "--no-probe", "--text"]) == 1
    shown = [line.split(None, 3) for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == ["can", "it", "work", "no"]
    assert any(SHARD in word for line in shown for word in line)


def test_a_job_that_says_nothing_is_no_plan(tmp_path, capsys):
    (tmp_path / "job.json").write_text("{}")
    assert main([str(tmp_path / "job.json")]) == 2
    assert "checkpoint" in capsys.readouterr().err


def test_shards_that_other_nodes_will_bring_are_counted_and_missed_by_nobody(job):
    checkpoint = Path(job.checkpoint)
    coming = {name: (checkpoint / name).stat().st_size for name in (MANIFEST, SHARD)}
    whole = plan(job)
    for name in coming:
        (checkpoint / name).unlink()
    assert {field for field, _ in why(job)} == {MANIFEST, SHARD}
    told = plan(job, coming)
    assert told.works
    assert told.reading.brought == sum(coming.values())
    assert told.reading.bytes == whole.reading.bytes
    assert told.disk.needed == whole.disk.needed + told.reading.brought


def cut(job: ExportJob) -> None:
    with Path(job.checkpoint, SHARD).open("r+b") as file:
        file.truncate(10)


def flip(job: ExportJob) -> None:
    path = Path(job.checkpoint, MODEL_FOLDER, ".metadata")
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def other_base(job: ExportJob) -> None:
    path = Path(job.model, "config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 5000, "hidden_size": 32}))


def unknown_architecture(job: ExportJob) -> None:
    path = Path(job.model, "config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "no-such-model"}))


def finished(job: ExportJob) -> None:
    Path(job.out).mkdir(parents=True)


@pytest.mark.parametrize(
    ("damage", "field", "reason"),
    [
        (lambda job: Path(job.checkpoint, SHARD).unlink(), SHARD, "data"),
        (cut, SHARD, "data"),
        (flip, f"{MODEL_FOLDER}/.metadata", "data"),
        (lambda job: Path(job.checkpoint, "manifest-0.json").unlink(), "manifest-0.json", "data"),
        (lambda job: shutil.rmtree(job.checkpoint), "checkpoint", "data"),
        (other_base, "model", "configuration"),
        (unknown_architecture, "model", "configuration"),
        (lambda job: Path(job.model, "tokenizer.json").unlink(), "model", "configuration"),
    ],
)
def test_every_reason_why_it_cannot_work_is_told(job, damage, field, reason):
    damage(job)
    assert (field, reason) in why(job)


def test_a_finished_export_in_the_place_is_told(job):
    finished(job)
    assert [(found.field, found.reason) for found in Planner(job, probe=False).plan().problems] == [
        ("out", "configuration")
    ]


def test_two_reasons_are_told_at_once(job):
    cut(job)
    other_base(job)
    assert {field for field, _ in why(job)} == {SHARD, "model"}


def test_an_adapter_is_asked_of_a_whole_model(job):
    assert why(job.model_copy(update={"adapter": "merged"})) == [("adapter", "configuration")]


def test_a_disk_without_room_is_told_with_both_figures(job, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(estimate.shutil, "disk_usage", lambda where: usage(10**9, 10**9, 1000))
    told = plan(job)
    assert [(f.field, str(f.reason), "1,000 are free" in f.why) for f in told.problems] == [("out", "disk_full", True)]
    assert told.writing.bytes > 0, "what it would be is told all the same"


def test_float16_is_told_to_have_no_place_for_large_values(job):
    told = plan(job.model_copy(update={"dtype": "float16"}))
    assert (told.works, [note.field for note in told.notes]) == (True, ["dtype"])


def test_a_model_larger_than_memory_is_proven_without_being_loaded(job, monkeypatch):
    memory = namedtuple("memory", "total available")
    monkeypatch.setattr(estimate, "memory", lambda: memory(1 << 30, estimate.HEADROOM + 1000))
    assert not plan(job).memory.whole


def test_the_base_s_format_is_its_config_s_or_that_of_its_files(job, sharded_checkpoints):
    config = type("config", (), {"dtype": None})
    assert of_base(job, config) == "bfloat16"
    truth = load_file(sharded_checkpoints / "untied" / "truth.safetensors")
    save_file({name: tensor.half() for name, tensor in truth.items()}, Path(job.model, "model.safetensors"))
    assert of_base(job, config) == "float16"
    config.dtype = "torch.float32"
    assert of_base(job, config) == "float32"


def test_no_rate_follows_from_a_disk_without_room_or_a_shard_that_is_too_small(tmp_path):
    (tmp_path / "shard").write_bytes(b"x" * 100)
    found = probe.rates(tmp_path, tmp_path / "shard", size=1 << 60)
    assert (found.read, found.write) == (0, 0)


def test_a_rate_is_bytes_by_seconds(tmp_path):
    (tmp_path / "shard").write_bytes(bytes(8 << 20))
    ticks = iter(range(0, 100, 2))
    found = probe.rates(tmp_path, tmp_path / "shard", size=8 << 20, clock=lambda: next(ticks))
    assert (found.read, found.write) == (4 << 20, 4 << 20)
    assert [path.name for path in tmp_path.iterdir()] == ["shard"]


def test_a_plan_from_a_node_is_checked_before_it_is_stored():
    with pytest.raises(ValueError, match="bytes"):
        ExportPlan.model_validate({"reading": {"bytes": -1}})
    assert issubclass(Refused, ValueError)
