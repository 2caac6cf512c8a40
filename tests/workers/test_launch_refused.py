"""Launches that are refused before anything trains: with the node, the reason and a way out."""

from __future__ import annotations

import json
from pathlib import Path

from tests.workers.world import World
from webapp.fleet.models import Claim, Node
from webapp.fleet.ssh import fingerprint, make_identity


def test_a_changed_host_key_ends_the_run_before_anything_is_put(world: World) -> None:
    other = make_identity().public
    Node.objects.filter(pk=world.nodes[1].pk).update(host_key=other)
    run = world.to(world.run(), "failed")
    assert run.reason == "host_key_changed"
    assert fingerprint(other) in run.reason_text
    assert fingerprint(world.hosts[1].host_key) in run.reason_text
    assert not Claim.objects.exists()
    assert not (Path(world.nodes[0].scratch) / "runs").exists()


def test_a_missing_python_is_refused_naming_node_and_way_out(world: World) -> None:
    Node.objects.filter(pk=world.nodes[1].pk).update(python="/nowhere/python")
    run = world.to(world.run(), "failed")
    assert run.reason == "preflight"
    assert "node n1" in run.reason_text
    assert "/nowhere/python" in run.reason_text
    assert "absolute path" in run.reason_text
    assert "/nowhere/python" in Node.objects.get(name="n1").problem
    assert Node.objects.get(name="n0").problem == ""
    assert world.starts() == []


def test_a_scratch_that_cannot_be_written_is_refused(world: World) -> None:
    (world.folder / "file").write_text("")
    Node.objects.filter(pk=world.nodes[0].pk).update(scratch=str(world.folder / "file" / "scratch"))
    run = world.to(world.run(), "failed")
    assert (run.reason, "node n0: scratch" in run.reason_text) == ("preflight", True)


def test_a_model_that_is_not_there_is_refused(world: World) -> None:
    (world.folder / "model").rmdir()
    run = world.to(world.run(), "failed")
    assert run.reason == "preflight"
    assert "Copy the model" in run.reason_text


def test_a_model_that_does_not_fit_into_memory_is_refused_before_anything_starts(world: World) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [10_000_000, 1_000_000], "data_offsets": [0, 0]}}).encode()
    file = world.folder / "model" / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    run = world.to(world.run(), "failed")
    assert run.reason == "preflight"
    for name in ("n0", "n1"):
        assert f"needs 80000.0 GB on node {name}, node has " in run.reason_text
    assert "Take more nodes, or a smaller model." in run.reason_text
    assert world.starts() == []
    assert not (Path(world.nodes[0].scratch) / "datasets").exists()


def test_a_data_set_that_vanished_here_is_refused(world: World) -> None:
    (world.version.folder / "train.jsonl").unlink()
    run = world.to(world.run(), "failed")
    assert (run.reason, "upload it again" in run.reason_text) == ("data", True)


def test_nodes_of_different_versions_are_refused(world: World) -> None:
    python = world.folder / "other"
    python.write_text(
        '#!/bin/sh\n"$(dirname "$0")/python" "$@" | sed \'s/"accelerate": "[^"]*"/"accelerate": "0.1"/\'\n'
    )
    python.chmod(0o755)
    Node.objects.filter(pk=world.nodes[1].pk).update(python=str(python))
    run = world.to(world.run(), "failed")
    assert run.reason == "preflight"
    assert "accelerate differs" in run.reason_text
    assert "n1 has 0.1" in run.reason_text
