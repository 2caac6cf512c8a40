"""An interpreter is made on a node over real SSH: killed in the middle, made again, taken once training can use it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workers.wheels import make_wheel, make_wheels, pinned, wheel_name
from tests.workers.world import GENEROUS, World
from training.spec.lint import Refused
from training.spec.venvfolder import VenvFolder
from webapp.fleet import provisioning
from webapp.fleet.models import Node, NodeChange, Provision
from webapp.fleet.models.node import NO_PYTHON
from workers.provision import advance, find, steps

BASE = os.path.realpath(sys.executable)
PASSWORD = "correct-horse"  # of an index that is never asked


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STAY_SECONDS", 0.0)


@pytest.fixture
def wheels(world: World, settings: Any) -> Path:
    settings.PIP_NO_INDEX = True
    settings.PIP_INDEX_URL = f"https://reader:{PASSWORD}@index.invalid/simple"
    settings.PIP_WHEELS = str(make_wheels(world.folder / "wheels"))
    return Path(settings.PIP_WHEELS)


def drive(found: Provision, until: Callable[[Provision], Any]) -> Provision:
    limit = time.monotonic() + GENEROUS
    while True:
        advance.advance(found.pk)
        found.refresh_from_db()
        if until(found):
            return found
        assert time.monotonic() < limit, (found.state, found.step, found.line, found.tail)
        time.sleep(0.1)


def hold_at(wheels: Path, name: str) -> Path:
    """Put a pipe in a wheel's place: pip opens it and waits for bytes that don't come."""
    path = wheels / wheel_name(name, pinned()[name])
    path.unlink()
    os.mkfifo(path)
    return path


def place(found: Provision) -> VenvFolder:
    return VenvFolder(Path(found.python).parents[1])  # type: ignore[arg-type]


def test_killed_in_the_middle_it_is_made_again_and_taken(world: World, wheels: Path) -> None:
    node = world.nodes[0]
    Node.objects.filter(pk=node.pk).update(python="", in_service=False, drained_why=NO_PYTHON)
    node.refresh_from_db()
    stopped = provisioning.provision(node, "ada", base=BASE)
    drive(stopped, lambda found: found.step)
    provisioning.cancel(stopped, "eve")
    drive(stopped, lambda found: found.has_ended)
    assert (stopped.state, stopped.cancelled_by) == ("cancelled", "eve")

    pipe = hold_at(wheels, "trl")
    first = provisioning.provision(node, "ada", base=BASE)
    with pytest.raises(Refused, match="already"):
        provisioning.provision(node, "eve")
    drive(first, lambda found: found.step == "packages" and "trl" in found.line)
    assert (first.state, first.number, first.steps) == ("running", 2, 2)
    os.killpg(int(Path(place(first).lock).read_text()), signal.SIGKILL)
    drive(first, lambda found: found.has_ended)
    assert (first.state, "ended on the node" in first.reason) == ("failed", True)
    assert "downloaded is kept" in first.fix
    node.refresh_from_db()
    assert (node.python, node.in_service) == ("", False)

    pipe.unlink()
    make_wheel(wheels, "trl", pinned()["trl"])
    second = drive(provisioning.provision(node, "ada", base=BASE), lambda found: found.has_ended)
    assert second.state == "done", (second.reason, second.tail)
    node.refresh_from_db()
    assert (node.python, node.in_service) == (str(place(first).python), True), "the same wish is the same folder"
    assert not Path(place(second).env).exists()
    assert not any(PASSWORD in path.read_text() for path in Path(place(second).making).iterdir() if path.is_file())
    assert NodeChange.objects.filter(node=node).first().text.endswith("returned to service")


def test_a_base_that_is_none_is_refused(world: World) -> None:
    node = world.nodes[0]
    with pytest.raises(Refused, match="absolute"):
        provisioning.provision(node, "ada", base="python3; touch /tmp/pwned")
    found = drive(provisioning.provision(node, "ada", base="/bin/$(false)"), lambda found: found.has_ended)
    assert (found.state, found.reason) == ("failed", "/bin/$(false) is no Python on that node")
    old = world.folder / "old"
    old.write_text(f"#!/bin/sh\necho '{json.dumps([str(old), [3, 9, 1], True])}'\n")
    old.chmod(0o755)
    found = drive(provisioning.provision(node, "ada", base=str(old)), lambda found: found.has_ended)
    assert "(Python 3.9.1) does not do" in found.reason
    find.find_pythons(node.pk)
    node.refresh_from_db()
    assert all(each["path"].startswith("/") for each in node.pythons)
    assert node.pythons_at is not None
