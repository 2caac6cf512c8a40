"""A launch whose checkpoints can't fit on its nodes' disks is refused before it starts; one that gets tight is told."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from tests.training.launch import recipe
from tests.workers.world import World
from training.spec.folder import JobFolder
from training.spec.forecast import Course
from training.spec.plan import NodeSlot
from webapp.fleet.ssh import Endpoint
from webapp.runs.models import Event
from workers.group import Member
from workers.launch import disk

RANK = 1024
BYTES = 12  # of an adapter's number in a checkpoint: itself and two moments, in fp32


def adapter_of(world: World, checkpoint: float) -> dict[str, Any]:
    """Give the world a model, of one layer of one row, whose adapter's checkpoint has about so many bytes."""
    columns = round(checkpoint / BYTES / RANK)
    header = json.dumps({"model.layers.0.q_proj.weight": {"dtype": "BF16", "shape": [1, columns]}}).encode()
    (world.folder / "model" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    method = {"kind": "lora", "rank": RANK}
    return {"method": method, "precision": "bf16", "checkpoints": {"every_steps": 1, "keep": 900}}


def test_what_can_never_be_saved_twice_is_refused_before_it_starts(world: World) -> None:
    free = shutil.disk_usage(world.folder).free
    run = world.run(**adapter_of(world, 2.2 * free))  # on each of two nodes: more than the disk holds
    world.drive(run, lambda r: r.state == "starting" or r.has_ended)
    assert (run.state, run.reason) == ("failed", "preflight")
    for name in ("n0", "n1"):
        assert f"node {name}: checkpoints: the last checkpoint and the one being written take" in run.reason_text
    assert "Free space there, take a larger disk or more nodes, or train an adapter." in run.reason_text
    assert not list(Path(world.nodes[0].scratch).glob("datasets/*/train.jsonl"))


def test_what_will_be_full_later_is_told_and_starts(world: World) -> None:
    free = shutil.disk_usage(world.folder).free
    run = world.run(**adapter_of(world, free / 9), optimisation={"max_steps": 5000})
    world.drive(run, lambda r: r.state == "starting" or r.has_ended)
    assert run.state == "starting", run.reason_text
    told = list(Event.objects.filter(attempt=run.attempt, kind="warning").values_list("data__text", flat=True))
    assert told  # as one disk or as two: others may write on it between two looks
    for text in told:
        assert re.match(r"disk of node n[01].*: full after step \d+: at most 901 at once and ", text)
        assert text.endswith(disk.WAY_OUT)


def members(count: int) -> list[Member]:
    found = []
    for rank in range(count):
        slot = NodeSlot(f"n{rank}", "10.0.0.1", "/python", "/scratch", 8, accelerator=True)
        endpoint = Endpoint(f"n{rank}", "10.0.0.1", 22, "me", "", "")
        found.append(Member(rank, rank, slot, endpoint, JobFolder(PurePosixPath("/scratch/job")), "r"))
    return found


SHAPE = {"parameters": 10**9, "tensors": 100, "tied": 0, "layers": []}


def facts(free: float, total: float = 1e12, **others: Any) -> dict[str, Any]:
    return {"disk_free": round(free), "disk_total": round(total), "model_shape": SHAPE, **others}


def test_a_private_disk_needs_a_part_and_a_shared_one_all_of_it() -> None:
    """A checkpoint of 12 GB: on two nodes 6 GB each, or all of it on the one disk that both see. Four at once."""
    nodes, asked, course = members(2), recipe(checkpoints={"keep": 3}), Course(500)
    apart = {"n0": facts(25e9), "n1": facts(24.5e9)}
    assert disk.warnings(asked, course, nodes, apart) == []
    apart["n1"] = facts(20e9)
    (told,) = disk.warnings(asked, course, nodes, apart)
    assert told.startswith("disk of node n1, checkpoints as estimated: full after step 9: at most 4 at once")
    (told,) = disk.warnings(asked, course, nodes, {"n0": facts(25e9), "n1": facts(25e9)})
    assert told.startswith("disk of node n0, which seems to be all nodes'")
    assert disk.problems(asked, course, nodes, nodes[0], facts(12.2e9)) == []
    assert [p.field for p in disk.problems(asked, course, nodes, nodes[0], facts(11e9))] == ["checkpoints"]


def test_what_a_node_does_not_tell_is_not_judged() -> None:
    nodes, asked, course = members(1), recipe(), Course(500)
    for known in ({}, facts(1) | {"model_shape": None}, facts(1) | {"disk_free": None}):
        assert disk.problems(asked, course, nodes, nodes[0], known) == []
        assert disk.warnings(asked, course, nodes, {"n0": known}) == []
