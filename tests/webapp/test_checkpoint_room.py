"""Which checkpoints stay, and whether there is room for them, is seen beforehand."""

from __future__ import annotations

from django.test import Client
from django.utils import timezone

from training.spec.faults import Reason
from webapp.runs import actions
from webapp.runs.shelf.room import rooms
from webapp.runs.shelf.rows import of_run
from webapp.runs.states import RunState

from .rows import World
from .shelf import at, text_of


def test_what_stays_and_what_goes_is_seen_beforehand(page: Client, world: World) -> None:
    """By the very rule that training deletes by; 12 steps, saved every 2, the newest 2 and the best one kept."""
    rule = {"every_steps": 2, "keep": 2, "keep_best": 1, "best_metric": "loss"}
    feed = world.running(checkpoints=rule)
    feed.started()
    feed.metrics(*[3.0] * 6)
    for step, loss in ((2, 1.5), (4, 2.0), (6, 2.5)):
        for rank in range(2):
            part = {"name": f"checkpoint-{step}", "node_rank": rank, "bytes": 500, "files": 2, "nodes": 2}
            known = {"metrics": {"loss": {"value": loss, "step": step}}, "world_size": 2}
            feed.write(f"train@{rank}", ("checkpoint", step, part | known))
    assert [(row.checkpoint.step, row.fate) for row in of_run(feed.run)] == [
        (6, "stays: last complete one; newest 2"),
        (4, "goes with the save of step 8: older than the newest 2; not among the best 1 by loss (2)"),
        (2, "stays: best 1 by loss (1.5)"),
    ]
    four = at(feed.run, 4)
    actions.pin_checkpoint(four, True, "ada")
    export = actions.export(feed.run, world.user, four)
    text = text_of(page.get(f"/runs/{feed.run.pk}/checkpoints/{four.pk}/row"))
    assert f"stays: pinned; held by export {export.pk}; newest 2" in text
    why = {"name": "checkpoint-2", "node_rank": 0, "why": "older than the newest 2"}
    feed.write("train@0", ("checkpoint_deleted", 2, why))
    assert "by the rule: older than the newest 2" in text_of(page.get(f"/runs/{feed.run.pk}/part/checkpoints"))
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert {row.fate for row in of_run(feed.run) if not row.checkpoint.deleted_at} == {""}


def test_a_disk_that_will_be_full_is_told_with_the_step(page: Client, world: World) -> None:
    feed = world.running(checkpoints={"every_steps": 2, "keep": 3})
    feed.started()
    address = f"/runs/{feed.run.pk}/part/checkpoints"
    assert 'data-testid="room"' not in text_of(page.get(address))  # nobody has seen the disk, or the model
    for rank, free in enumerate((10_000, 900)):
        feed.write(f"node@{rank}", ("sample", None, {"disk_free": free, "disk_total": 20_000}))
    feed.metrics(3.0, 2.5)
    feed.checkpoint(2)
    own = rooms(feed.run)
    assert [(r.node, r.outlook.fits, r.outlook.full_at) for r in own] == [("alpha", True, 0), ("beta", False, 6)]
    text = text_of(page.get(address))
    assert "⚠ beta: full after step 4: at most 4 at once" in text
    assert "With 12 steps these stay: 8, 10, 12 (newest 3)" in text
    alone = {"disk_total": 20_000, "disk_free": 10_000}
    feed.run.attempt.placements.update(facts={"check": alone})
    (both,) = rooms(feed.run)  # at the launch they saw one disk: it has to hold what both write
    assert (both.node, both.outlook.need) == ("alpha and beta, which seem to see one disk", 2 * own[0].outlook.need)
    feed.end(RunState.STOPPED, reason=Reason.STOPPED)
    assert rooms(feed.run) == []


def test_a_new_run_s_room_is_seen_before_it_is_made(page: Client, world: World) -> None:
    """From the model's shape, as a node told at an earlier launch, and from the disks of the nodes' checks."""
    opened = page.get("/runs/new/").context["form"]
    form = {"name": "n", "preset": opened.preset, "model": world.model.pk, "dataset": world.version.pk}
    form |= {"cluster": world.cluster.pk, "editor": "form", "yaml": opened.text, **opened.fields}
    assert "shows once a node has looked at the model" in text_of(page.post("/runs/new/panel", form))
    shape = {"parameters": 5_000_000, "tensors": 40, "tied": 0, "layers": []}
    feed = world.running()
    feed.run.attempt.placements.update(facts={"check": {"model_shape": shape}})
    for node, free in zip(world.nodes, (10**9, 10**7), strict=True):
        node.facts, node.checked_at = {"disk_free": free, "disk_total": 10**10}, timezone.now()
        node.save()
    text = text_of(page.post("/runs/new/panel", form))
    assert "⚠ beta: no room for the first one: at most" in text
    assert "its size is an estimate (its disk was looked at" in text
    assert rooms(feed.run) == []  # no sample has told its disks
    feed.write("node@0", ("sample", None, {"disk_free": 10**9}))
    (alpha,) = rooms(feed.run)
    assert (alpha.estimated, alpha.outlook.fits) == (True, True)
    assert 30_000_000 < alpha.outlook.need // alpha.outlook.most < 31_000_000  # half of 12 bytes a parameter
    shared = {"model_shape": shape, "disk_free": 10**9, "disk_total": 10**10}
    feed.run.attempt.placements.update(facts={"check": shared})
    (both,) = rooms(feed.run)
    assert 60_000_000 < both.outlook.need // both.outlook.most < 62_000_000  # all of it, on the disk of both
