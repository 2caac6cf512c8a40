"""python -m training sft recipe.yaml: what is wrong is refused first, all at once; nothing is touched by that."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training.byhand import nodes, past
from training.byhand.cli import is_job, main
from training.byhand.order import Wanted, planned
from training.saving.checkpoints import Manifest, write_manifest
from training.spec.job import TrainJob
from training.spec.lint import Refused
from training.spec.mark import MARK

RECIPE = """
model: {name: base, attention: sdpa}
data: {train: rows.jsonl, max_length: 64}
optimisation: {max_steps: 3}
precision: fp32
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recipe, a model's folder and rows; the paths in the recipe count from there, not from here."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text("{}")
    (tmp_path / "rows.jsonl").write_text('{"messages": []}\n')
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    return tmp_path


def wanted(place: Path, **more: Any) -> Wanted:
    return Wanted(place / "recipe.yaml", **more)


def test_it_is_planned_as_the_service_would(place: Path) -> None:
    found = planned(wanted(place, processes=3))
    plan = found.plan
    job = TrainJob.model_validate_json(plan.files["recipe.json"])
    assert (job.model, job.train, job.test) == (str(place / "base"), str(place / "rows.jsonl"), "")
    assert str(plan.folder.path) == str(place / "recipe.out/runs/1/1/node0")
    assert "num_processes: 3\n" in plan.files["accelerate.yaml"]
    assert (found.attempt, found.skipped) == (1, [])
    assert not (place / "recipe.out").exists()


def test_on_cpu_two_ranks_are_taken(place: Path) -> None:
    assert planned(wanted(place)).plan.node.processes == 2


def test_a_second_node_has_its_own_rank_and_the_first_ones_address(place: Path) -> None:
    plan = planned(wanted(place, nodes="10.77.0.11, 10.77.0.12", rank=1, port=29501)).plan
    text = plan.files["accelerate.yaml"]
    assert plan.rank == 1
    assert "main_process_ip: 10.77.0.11\nmain_process_port: 29501\n" in text
    assert "machine_rank: 1\n" in text
    assert json.loads(plan.files["job.json"])["node_rank"] == 1


def test_a_hub_id_stays_one(place: Path) -> None:
    (place / "recipe.yaml").write_text(RECIPE.replace("name: base", "name: org/model-7b, revision: v2"))
    job = TrainJob.model_validate_json(planned(wanted(place)).plan.files["recipe.json"])
    assert (job.model, job.revision) == ("org/model-7b", "v2")


Change = Callable[[Path], dict[str, Any]]


def text(old: str, new: str) -> Change:
    def change(place: Path) -> dict[str, Any]:
        (place / "recipe.yaml").write_text(RECIPE.replace(old, new))
        return {}

    return change


@pytest.mark.parametrize(
    ("change", "field", "why"),
    [
        (text("name: base, ", ""), "model.name", "it is empty"),
        (text("name: base", "name: ./nothing"), "model.name", "there is no folder"),
        (text("name: base", "name: rows.jsonl"), "model.name", "holds no config.json"),
        (text("name: base", "name: a/b/c"), "model.name", "there is no folder"),
        (text("name: base", f"name: /{'a' * 300}"), "model.name", "can't be looked at"),
        (text("train: rows.jsonl, ", ""), "data.train", "it is empty"),
        (text("rows.jsonl", "~nobody.here/rows.jsonl"), "data.train", "can't be looked at"),
        (text("rows.jsonl", "other.jsonl"), "data.train", "there is no file"),
        (text("max_length", "test: none.jsonl, max_length"), "data.test", "there is no file"),
        (text("max_steps", "max_step"), "optimisation.max_step", "unknown field"),
        (text("fp32", "fp32\nprecision: bf16"), "recipe", "precision is there twice"),
        (text("fp32", "fp32\nlimits: {restarts: 2}"), "limits.restarts", "nobody is there"),
        (text("fp32", "fp16"), "precision", "needs a GPU"),
        (lambda place: {"recipe": place / "none.yaml"}, "recipe", "No such file"),
        (lambda _: {"processes": 0}, "--processes", "it is 0"),
        (lambda _: {"nodes": "a,a", "port": 1}, "--nodes", "there twice"),
        (lambda _: {"nodes": "a,b", "rank": 2, "port": 1}, "--rank", "this is none of them"),
        (lambda _: {"nodes": "a,b"}, "--port", "where to meet"),
        (lambda _: {"port": 70000}, "--port", "is no port"),
        (lambda _: {"resume": "latest"}, "--resume", "only steps: none"),
        (lambda _: {"resume": "-3"}, "--resume", "is no step"),
        (lambda _: {"fresh": ["tokens"]}, "--fresh", "without --resume every part begins anew"),
        (lambda _: {"attempt": 0}, "--attempt", "count from 1"),
    ],
)
def test_it_refuses(place: Path, change: Change, field: str, why: str) -> None:
    options = {"recipe": place / "recipe.yaml"} | change(place)
    before = sorted(place.rglob("*"))
    with pytest.raises(Refused) as refused:
        planned(Wanted(**options))
    (problem,) = refused.value.problems
    assert (problem.field, why in problem.reason, bool(problem.fix)) == (field, True, True)
    assert sorted(place.rglob("*")) == before


def test_every_problem_is_told_at_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text("name: base", "name: ./nothing")(place)
    assert main([str(place / "recipe.yaml"), "--resume", "7", "--processes", "-1"]) == 2
    told = capsys.readouterr().err
    assert [line.partition(":")[0] for line in told.splitlines()] == ["model.name", "--processes", "--resume"]


def test_a_job_of_the_plan_is_told_from_a_recipe(place: Path) -> None:
    plan = planned(wanted(place)).plan
    (place / "job.json").write_text(plan.files["recipe.json"])
    (place / "recipe.json").write_text(json.dumps({"checkpoints": {"keep": 1}}))
    assert is_job(place / "job.json")
    assert not is_job(place / "recipe.json")
    assert not is_job(place / "none.json")


def checkpoint(place: Path, attempt: int, step: int, *, complete: bool = True) -> None:
    folder = place / f"recipe.out/runs/1/{attempt}/checkpoints/checkpoint-{step}"
    folder.mkdir(parents=True)
    if complete:
        write_manifest(folder, Manifest(step=step, save="s", node_rank=0, nodes=1, world_size=2, files={}))


def test_latest_is_the_newest_attempts_newest_complete_one(place: Path) -> None:
    for attempt, step, complete in ((1, 8, True), (2, 4, True), (2, 6, False)):
        checkpoint(place, attempt, step, complete=complete)
    found = past.checkpoint(place / "recipe.out", 1, "latest")
    assert found.place == (2, 4)
    assert found.skipped == ["attempt 2, checkpoint-6: it has no manifest, so its save did not end"]
    assert past.checkpoint(place / "recipe.out", 1, "8").place == (1, 8)
    with pytest.raises(Refused, match="its save did not end"):
        past.checkpoint(place / "recipe.out", 1, "6")


def test_attempts_are_numbered_per_node(place: Path) -> None:
    (place / "recipe.out/runs/1/3/node0").mkdir(parents=True)
    assert past.attempt(place / "recipe.out", 1, 0, None) == 4
    assert past.attempt(place / "recipe.out", 1, 1, None) == 1
    assert past.attempt(place / "recipe.out", 1, 1, 3) == 3
    with pytest.raises(Refused, match="there already"):
        past.attempt(place / "recipe.out", 1, 0, 3)


def test_an_attempt_whose_ranks_still_live_is_not_run_over(place: Path) -> None:
    """Their supervisor may be gone: nobody else says that they run."""
    folder = place / "recipe.out/runs/1/1/node0"
    folder.mkdir(parents=True)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=os.environ | {MARK: str(folder)}) as rank:
        with pytest.raises(Refused, match="--out: attempt 1 still runs there"):
            past.attempt(place / "recipe.out", 1, 0, None)
        assert past.attempt(place / "recipe.out", 1, 1, None) == 1
        rank.communicate()
    assert past.attempt(place / "recipe.out", 1, 0, None) == 2


@pytest.mark.parametrize(("setting", "count"), [(None, 8), ("", 0), ("2,3", 2), ("0", 1)])
def test_gpus_hidden_by_the_environment_do_not_count(setting: str | None, count: int) -> None:
    assert nodes.visible(8, setting) == count


def test_the_interface_is_the_one_that_has_the_address(place: Path) -> None:
    plan = planned(wanted(place)).plan
    assert plan.env["GLOO_SOCKET_IFNAME"] in {name for _, name in socket.if_nameindex()}
