"""What runs on nodes and should not: found, told apart from what is at work, ended only where somebody asks for it."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from tests.runs.test_journal import attempt  # noqa: F401  a small world of rows
from tests.training.nodejobs import call, gone
from tests.workers.world import Following, World
from training.spec.jobname import JobName, named
from training.spec.lint import Refused
from webapp.fleet.models import Node
from webapp.leftovers import actions, known
from webapp.leftovers.models import Leftover, NodeLook
from webapp.runs.models import Attempt
from workers import leftovers, sweep

Why = Leftover.Why


def foreign(scratch: str) -> tuple[Path, int]:
    """Start a job that no service knows of; return its folder and its process."""
    folder = Path(scratch) / "runs" / "77" / "1" / "node0"
    folder.mkdir(parents=True)
    words = [sys.executable, "-c", "import os, time\nopen('who', 'w').write(str(os.getpid()))\ntime.sleep(600)"]
    (folder / "job.json").write_text(json.dumps({"argv": words, "disk": scratch}))
    (folder / "env").touch(0o600)
    assert call("start", str(folder)).returncode == 0
    while not (folder / "who").exists() or not (folder / "who").read_text():
        pass
    return folder, int((folder / "who").read_text())


def test_a_foreign_job_is_listed_and_ended_and_the_run_beside_it_goes_on(
    world: World, following: Following, client: Client
) -> None:
    world.behave(steps=100_000, pace=0.1)
    run = world.to(world.run(), "running")
    folder, pid = foreign(world.nodes[0].scratch)
    leftovers.look(world.nodes[0].pk)
    (row,) = Leftover.objects.all()
    assert (row.folder, row.why, row.run, row.processes, row.supervised) == (str(folder), Why.UNKNOWN, 77, 1, True)
    at_work = set(world.supervisors())
    leftovers.end(row.pk)  # nobody has asked for it
    assert not gone(pid)
    actions.end(row, "ada")
    leftovers.end(row.pk)
    leftovers.end(row.pk)  # delivered twice
    row.refresh_from_db()
    assert row.ended_at is not None
    assert gone(pid)
    left = {p for p in at_work if not gone(p)}
    assert len(left) == len(at_work) - 1  # the foreign supervisor alone
    run.refresh_from_db()
    assert run.state == "running"
    with pytest.raises(Refused, match="ended already"):
        actions.end(row, "ada")
    leftovers.look(world.nodes[0].pk)
    assert [found.folder for found in Leftover.objects.filter(ended_at=None)] == []


def test_a_run_below_a_scratch_that_is_a_link_is_no_leftover(world: World, following: Following) -> None:
    node, link = world.nodes[0], world.folder / "link"
    link.symlink_to(node.scratch)
    Node.objects.filter(pk=node.pk).update(scratch=str(link))
    world.behave(steps=100_000, pace=0.1)
    run = world.to(world.run(), "running")
    folder, pid = foreign(node.scratch)
    leftovers.look(node.pk)
    assert [(row.folder, row.run) for row in Leftover.objects.all()] == [(str(folder), 77)]
    place = run.attempt.placements.get(rank=0)
    Leftover.objects.update(folder=f"{node.scratch}/runs/{run.pk}/1/node{place.rank}", run=run.pk)
    actions.end(Leftover.objects.get(), "ada")
    leftovers.end(Leftover.objects.get().pk)
    assert "at work for a run again" in Leftover.objects.get().problem
    assert not gone(pid)
    for one in world.nodes:
        call("stop-all", one.scratch)


@pytest.mark.django_db
def test_what_is_at_work_is_no_leftover(attempt: Attempt) -> None:  # noqa: F811
    node, now = Node.objects.get(), timezone.now()
    own = JobName("attempt", attempt.run_id, 1, 0)
    assert known.why(node, own, now) is None
    Attempt.objects.update(ended_at=now + timedelta(seconds=1))
    assert known.why(node, own, now) is None  # it ended while the node was asked
    assert known.why(node, own, now + timedelta(seconds=2)) == Why.OVER
    for other in (None, JobName("attempt", 5, 9, 0), JobName("export", attempt.run_id, 9)):
        assert known.why(node, other, now) == Why.UNKNOWN


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/s/runs/4/2/node1", JobName("attempt", 4, 2, 1)),
        ("/s/runs/4/exports/7", JobName("export", 4, 7)),
        ("/s/runs/4/other/7", None),
        ("/s/runs/4/2/node1/../../3/node1", None),
        ("/t/runs/4/2/node1", None),
    ],
)
def test_a_folder_says_whose_it_is(folder: str, found: JobName | None) -> None:
    assert named("/s", folder) == found


@pytest.mark.django_db
def test_each_node_in_service_is_asked_once_in_a_while(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(leftovers.dispatch, "send", lambda *words: sent.append(words))
    for _ in range(2):
        leftovers.sweep(timezone.now())
    node = Node.objects.get()
    assert sent == [("workers.look_at_node", node.pk)]
    leftovers.look_soon()
    sweep.sweep()
    assert sent.count(("workers.look_at_node", node.pk)) == 2
    assert NodeLook.objects.get().due_at > timezone.now()
