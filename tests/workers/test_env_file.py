"""HF_TOKEN and NCCL_* reach the ranks of every node, through the env file and on no other way."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core import serializers

from tests.workers.world import Following, World
from training.spec.envfile import MARK, parse
from webapp.fleet.models import Node
from webapp.runs import actions
from webapp.runs.files import launch_files
from webapp.runs.models import Attempt, Event, Run
from workers.launch import prepare

SECRET = "hf_only_in_the_env_file"
SETTINGS = {"HF_TOKEN": SECRET, "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1"}


def processes(node: Node) -> list[psutil.Process]:
    """Return the ranks' processes, and their launcher's, on a node."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(f"{node.scratch}/"):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def given(tmp_path: Path, settings: Any) -> Path:
    """The file that an operator has named."""
    path = tmp_path / "rank_env"
    path.write_text("# for all nodes\n" + "".join(f"{name}={value}\n" for name, value in SETTINGS.items()))
    settings.RANK_ENV = str(path)
    return path


def test_they_reach_each_node_through_the_env_file_alone(
    world: World, following: Following, given: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.behave(steps=100_000, pace=0.02)
    run = world.to(world.run(), "running")
    for node in world.nodes:
        ranks = processes(node)
        assert ranks
        for process in ranks:
            assert SETTINGS.items() <= process.environ().items()
            assert SECRET not in " ".join(process.cmdline())
    actions.stop(run, "ada")
    world.to(run, "stopped")
    for node in world.nodes:
        files = [path for path in Path(node.scratch).rglob("*") if path.is_file()]
        (holder,) = [path for path in files if SECRET.encode() in path.read_bytes()]
        assert holder.name == "env"
        assert holder.stat().st_mode & 0o777 == 0o600
        assert SETTINGS.items() <= parse(holder.read_text()).items()
    assert not [command for host in world.hosts for command in host.commands if SECRET in command]
    rows = [*Run.objects.all(), *Attempt.objects.all(), *Event.objects.all()]
    assert SECRET not in serializers.serialize("json", rows)
    assert SECRET not in caplog.text


def test_the_page_names_them_and_hides_their_values(world: World, given: Path) -> None:
    run = world.run()
    for node in launch_files(run).nodes:
        assert {"HF_TOKEN=(hidden)", "NCCL_DEBUG=(hidden)", "HF_HUB_OFFLINE=1"} <= set(node.env.splitlines())
    assert SECRET not in repr(launch_files(run))


def test_what_is_ours_is_hidden_where_the_operator_sets_it(world: World, given: Path) -> None:
    given.write_text(f"OMP_NUM_THREADS={SECRET}\n")
    assert "OMP_NUM_THREADS=(hidden)" in launch_files(world.run()).nodes[0].env


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (SECRET.encode(), "rank_env line 1: it is not KEY=value"),
        (b"A=1\n\nHF-TOKEN=" + SECRET.encode(), "rank_env line 3: this is no name"),
        (b"A=1\nHF_TOKEN=\xff" + SECRET.encode(), "rank_env line 2: it is not UTF-8"),
        (None, "rank_env: No such file"),
    ],
)
def test_a_broken_file_refuses_the_launch_before_a_node_is_touched(
    world: World, given: Path, content: bytes | None, why: str
) -> None:
    run = world.run()
    given.write_bytes(content) if content is not None else given.unlink()
    world.drive(run, lambda r: r.has_ended)
    assert (run.state, run.reason) == ("failed", "configuration")
    assert why in run.reason_text
    assert [problem.reason in run.reason_text for problem in launch_files(run).problems] == [True]
    assert [host.commands for host in world.hosts] == [[], []]
    told = serializers.serialize("json", [*Run.objects.all(), *Attempt.objects.all(), *Event.objects.all()])
    assert SECRET not in told + run.reason_text


def test_it_is_read_anew_and_goes_to_exports_too(world: World, given: Path) -> None:
    before = prepare.environment("/models/m")
    given.write_text("HF_TOKEN=another\nHF_HUB_OFFLINE=0\n")
    assert before == {"HF_HUB_OFFLINE": "1", **SETTINGS}
    assert prepare.environment("/models/m") == {"HF_TOKEN": "another", "HF_HUB_OFFLINE": "0"}
    assert prepare.environment("org/model") == {"HF_TOKEN": "another", "HF_HUB_OFFLINE": "0"}
