"""HF_TOKEN and NCCL_* reach the ranks of every node, through the env file and on no other way."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from django.core import serializers

from tests.workers.world import Following, World
from training.spec.envfile import MARK, parse
from webapp.fleet.models import Node
from webapp.runs import actions
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


def test_they_reach_each_node_through_the_env_file_alone(
    world: World, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "environment", lambda model: dict(SETTINGS))
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
