"""Exports sent elsewhere, over real SSH: by a job of their node, or carried to another, whatever is killed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.training.deliver.conftest import S3, s3_server  # noqa: F401
from tests.training.deliver.harness import flip, make_export, sha256
from tests.workers.world import Following, World
from webapp.deliveries import places
from webapp.deliveries.actions import deliver, usual_name
from webapp.deliveries.models import Delivery, Destination
from webapp.fleet.ssh import Host
from webapp.runs import actions
from webapp.runs.models import Checkpoint, Event, Export
from workers.deliver import remote
from workers.nodejob import advance as nodejob
from workers.nodejob import work

SIZES = {"config.json": 400, "model-1.safetensors": 300_000, "model-2.safetensors": 200_000}


@pytest.fixture
def export(world: World, following: Following) -> Export:
    """Return an export that is ready on n0, with its proof beside it."""
    world.user.is_staff = True
    world.user.save()
    checkpoint = Checkpoint.objects.create(attempt=world.run().attempt, step=4, nodes=1, world_size=1)
    node = world.nodes[0]
    made = Export.objects.create(checkpoint=checkpoint, dtype="float32", node=node, slot=vars(node.slot()))
    folder = make_export(Path(made.folder.model), SIZES)
    names = [*SIZES, "proof.json"]
    made.files = [{"name": n, "size": (folder / n).stat().st_size, "sha256": sha256(folder / n)} for n in names]
    made.state = "ready"
    made.save()
    return made


def drive(world: World, delivery: Delivery, *states: str) -> Delivery:
    def there(_: Any) -> bool:
        delivery.refresh_from_db()
        return delivery.state in states

    world.drive(delivery.run, there, step=lambda: nodejob.advance("delivery", delivery.pk))
    return delivery


def is_whole(folder: Path, export: Export) -> bool:
    """Tell whether all of the export is there, and nothing else."""
    wanted = {file["name"]: file["sha256"] for file in export.files}
    sums = (folder / "SHA256SUMS").read_text()
    named = {name: digest for digest, name in (line.split("  ") for line in sums.splitlines())}
    there = {path.name: sha256(path) for path in folder.iterdir() if path.name != "SHA256SUMS"}
    return there == wanted == named


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.parent.iterdir() if path.name.startswith(f"{folder.name}.")]


def test_to_a_folder_of_the_node_after_a_kill_twice_and_not_over_others(
    world: World, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = world.folder / "shelf"
    killed(world, deliver(export, world.user, folder=str(folder)), monkeypatch)
    assert not folder.exists()
    done = drive(world, deliver(export, world.user, folder=str(folder)), "done", "failed")
    assert (done.state, done.node, done.reason_text) == ("done", export.node, "finished")
    assert is_whole(folder, export)
    assert done.result["bytes_sent"] > sum(SIZES.values())
    again = drive(world, deliver(export, world.user, folder=str(folder)), "done", "failed")
    assert (again.result["already"], again.result["bytes_sent"]) == (True, 0)
    flip(folder / "config.json")
    other = drive(world, deliver(export, world.user, folder=str(folder)), "done", "failed")
    assert (other.state, "other content" in other.reason_text) == ("failed", True)
    told = Event.objects.filter(kind="delivery", data__delivery=done.pk).order_by("number")
    assert [e.data["new"] for e in told] == ["queued", "preparing", "running", "done"]
    assert told[0].data["actor"] == "ada"


def killed(world: World, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill all of a delivery on its node, the supervisor too: the node is asked, and the secrets' file goes."""
    gate = gated(world)
    drive(world, delivery, "running")
    for pid in world.supervisors():
        os.kill(pid, signal.SIGKILL)
    with monkeypatch.context() as at_once:
        at_once.setattr(work, "SILENCE", timedelta(0))
        drive(world, delivery, "failed", "done")
    assert (delivery.state, delivery.reason) == ("failed", "supervisor_lost")
    assert not Path(delivery.folder.env).exists()
    gate.touch()


def gated(world: World) -> Path:
    """Have deliveries on nodes wait until the returned file exists."""
    gate, python = world.folder / "gate", world.folder / "python"
    waiting = f'case "$2 $3" in "training deliver") until [ -e {gate} ]; do sleep 0.1; done ;; esac'
    shebang, rest = python.read_text().split("\n", 1)
    python.write_text(f"{shebang}\n{waiting}\n{rest}")
    return gate


def to_other(world: World) -> Destination:
    base = world.folder / "models"
    base.mkdir()
    kept = Destination(name="other", kind="node", node=world.nodes[1])
    return places.save(kept, {"folder": str(base)}, {}, world.user)


def test_to_another_node_goes_on_after_kills(world: World, export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / usual_name(export)
    copied: list[str] = []
    real = Host.write_stream

    async def spied(host: Host, path: str, blocks: Any) -> tuple[int, str]:
        copied.append(Path(path).name)
        if copied.count("model-2.safetensors") == 1 and copied[-1] == "model-2.safetensors":
            world.hosts[1].cut()  # in the middle
        return await real(host, path, blocks)

    monkeypatch.setattr(Host, "write_stream", spied)
    delivery = deliver(export, world.user, destination)
    while "model-1.safetensors" not in delivery.carried.get("fate", {}):
        nodejob.advance("delivery", delivery.pk)
        delivery.refresh_from_db()
    Delivery.objects.update(carried={"stage": "fill", "fate": {}})  # a worker killed before it could say so
    drive(world, delivery, "done", "failed")
    assert (delivery.state, delivery.reason_text) == ("done", "finished")
    assert is_whole(folder, export)
    assert leftovers(folder) == []
    assert sorted(copied) == ["config.json", "model-1.safetensors", *["model-2.safetensors"] * 2, "proof.json"]
    assert delivery.result["bytes_skipped"] == 300_400
    assert Event.objects.filter(source=f"delivery@{delivery.pk}", kind="progress").exists()
    again = drive(world, deliver(export, world.user, destination), "done", "failed")
    assert (again.result["already"], again.result["bytes_sent"]) == (True, 0)


def test_another_node_s_other_content_stays_unless_it_may_go(
    world: World, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / "named"
    folder.mkdir()
    (folder / "theirs").write_text("x")
    refused = drive(world, deliver(export, world.user, destination, name="named"), "done", "failed")
    assert (refused.state, refused.reason, (folder / "theirs").exists()) == ("failed", "destination", True)
    delivery = deliver(export, world.user, destination, name="named", replace=True)
    while delivery.carried.get("stage") != "swap":
        nodejob.advance("delivery", delivery.pk)
        delivery.refresh_from_db()
    shutil.move(folder, remote.work_of(str(folder)) + "/old")  # killed between its two renames
    drive(world, delivery, "done", "failed")
    assert is_whole(folder, export)
    assert (delivery.result["replaced"], leftovers(folder)) == (True, [])


def test_one_is_cancelled_and_goes_on_later(world: World, export: Export) -> None:
    destination = to_other(world)
    delivery = deliver(export, world.user, destination)
    while not delivery.carried.get("fate"):
        nodejob.advance("delivery", delivery.pk)
        delivery.refresh_from_db()
    actions.cancel(delivery, "ada")
    drive(world, delivery, "cancelled")
    assert not (world.folder / "models" / usual_name(export)).exists()
    again = drive(world, deliver(export, world.user, destination), "done", "failed")
    assert again.result["bytes_skipped"] == 400


def step_until(delivery: Delivery, stage: str = "fill", fate: int = 0) -> Delivery:
    """Go on until so many files have their fate, in this stage or behind it."""
    while delivery.carried.get("stage") != stage or len(delivery.carried.get("fate", {})) < fate:
        nodejob.advance("delivery", delivery.pk)
        delivery.refresh_from_db()
    return delivery


def another(export: Export, sizes: dict[str, int]) -> Export:
    """Return a second export that is ready, with other files."""
    made = Export.objects.create(checkpoint=export.checkpoint, dtype="bfloat16", node=export.node, slot=export.slot)
    folder = make_export(Path(made.folder.model), sizes, seed=2)
    names = [*sizes, "proof.json"]
    made.files = [{"name": n, "size": (folder / n).stat().st_size, "sha256": sha256(folder / n)} for n in names]
    made.state = "ready"
    made.save()
    return made


def test_what_another_export_or_a_dead_worker_left_there_gets_into_no_folder(world: World, export: Export) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / "prod"
    first = step_until(deliver(export, world.user, destination, name="prod"), fate=2)
    actions.cancel(first, "ada")
    drive(world, first, "cancelled")
    new = Path(remote.work_of(str(folder))) / "new"
    (new / ".model-1.safetensors.fe5ef1c0").write_text("half")
    (new / "deeper").mkdir()
    (new / "config.json").unlink()
    (new / "config.json").symlink_to("/etc/hostname")
    other = another(export, {"config.json": 400, "model.safetensors": 1000})
    second = step_until(deliver(other, world.user, destination, name="prod"), stage="swap")
    (new / ".model.safetensors.12345678").write_text("half")  # of a worker that died in this one
    drive(world, second, "done", "failed")
    assert (second.state, second.reason_text) == ("done", "finished")
    assert is_whole(folder, other)
    assert leftovers(folder) == []


def test_a_working_folder_that_goes_away_ends_it_with_nothing_in_the_place(world: World, export: Export) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / "prod"
    work = Path(remote.work_of(str(folder)))
    ways: list[tuple[str, Callable[[], Any]]] = [
        ("swap", lambda: shutil.rmtree(work)),
        ("swap", (work / "new" / "config.json").unlink),
        ("fill", lambda: (work / "of-shardboard").write_text("99")),  # another took it over, as on a shared disk
    ]
    for stage, way in ways:
        delivery = step_until(deliver(export, world.user, destination, name="prod"), stage, fate=1)
        way()
        drive(world, delivery, "done", "failed")
        assert (delivery.state, delivery.reason, folder.exists()) == ("failed", "destination", False)
        assert "send it again" in delivery.reason_text
    drive(world, deliver(export, world.user, destination, name="prod"), "done", "failed")
    assert is_whole(folder, export)


def test_a_full_disk_is_told_also_where_the_names_are_the_same(
    world: World, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / "prod"
    drive(world, deliver(export, world.user, destination, name="prod"), "done", "failed")
    flip(folder / "model-2.safetensors")
    tools = world.folder / "tools"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\necho Avail; echo 500000\n")
    (tools / "df").chmod(0o755)
    with monkeypatch.context() as small:
        small.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        refused = drive(world, deliver(export, world.user, destination, name="prod", replace=True), "done", "failed")
    assert (refused.state, refused.reason) == ("failed", "disk_full")
    assert "500,000 are free" in refused.reason_text
    world.hosts[1].commands.clear()
    drive(world, deliver(export, world.user, destination, name="prod", replace=True), "done", "failed")
    assert is_whole(folder, export)
    removed = [command.split()[3:] for command in world.hosts[1].commands if command.startswith("rm ")]
    work = remote.work_of(str(folder))
    assert removed[-2:] == [[f"{work}/old"], [work]]  # killed between them, what is left still has its mark


def test_a_link_in_the_place_stays_and_is_named(world: World, export: Export) -> None:
    destination = to_other(world)
    (world.folder / "models" / "prod").symlink_to(world.folder)
    sent = deliver(export, world.user, destination, name="prod", replace=True)
    assert "is a file or a link" in drive(world, sent, "done", "failed").reason_text
    assert (world.folder / "models" / "prod").is_symlink()


def test_a_link_where_it_would_work_is_refused_and_a_damaged_export_leaves_nothing(
    world: World, export: Export
) -> None:
    destination = to_other(world)
    folder = world.folder / "models" / usual_name(export)
    (world.folder / "data").mkdir()
    folder.with_name(f"{folder.name}.delivery").symlink_to(world.folder / "data")
    linked = drive(world, deliver(export, world.user, destination), "done", "failed")
    assert (linked.state, "is in the way" in linked.reason_text) == ("failed", True)
    folder.with_name(f"{folder.name}.delivery").unlink()
    flip(Path(export.folder.model) / "model-2.safetensors")
    damaged = drive(world, deliver(export, world.user, destination), "done", "failed")
    assert (damaged.reason, "model-2.safetensors" in damaged.reason_text) == ("data", True)
    assert list((world.folder / "models").iterdir()) == []


def test_to_a_bucket_with_a_secret_that_is_in_the_env_file_alone(
    world: World,
    export: Export,
    s3_server: S3,  # noqa: F811
) -> None:
    secrets = s3_server.keys["all"]
    settings = {k: v for k, v in s3_server.target("site").items() if k != "kind"}
    kept = places.save(Destination(name="bucket", kind="s3"), settings, secrets, world.user)
    delivery = deliver(export, world.user, kept)
    done = drive(world, delivery, "done", "failed")
    assert (done.state, done.reason_text) == ("done", "finished")
    assert s3_server.client().head_object(Bucket="models", Key=f"site/{usual_name(export)}/SHA256SUMS")
    job = Path(done.folder.path)
    assert not (job / "env").exists()
    texts = [path.read_text(errors="replace") for path in job.rglob("*") if path.is_file()]
    texts += [command for host in world.hosts for command in host.commands]
    texts += [str(row) for row in Event.objects.values_list("data", flat=True)]
    texts += [str(row) for model in (Delivery, Destination) for row in model.objects.values()]
    assert not [secret for secret in secrets.values() for text in texts if secret in text]
