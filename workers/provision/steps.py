"""The steps of making an interpreter on a node. Each can be done twice, and be killed anywhere."""

from __future__ import annotations

import time
from pathlib import PurePosixPath
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.spec.lint import Problem, Refused
from training.spec.provision import choose, way_out
from training.spec.venvfolder import VenvFolder
from webapp import dispatch
from webapp.fleet import actions, changes
from webapp.fleet.models import Node, Provision
from webapp.fleet.models.provision import ProvisionState

from ..group import Answer
from . import find, remote, wanted

LOOK_SECONDS = 1.0  # the sweep comes every 5 s
STAY_SECONDS = 4.0  # that one look goes on, so that the page moves: half of a worker's slot, and no more
BETWEEN_SECONDS = 1.0
SHOWN = 40  # lines of a step that failed
OF_PYTHON = {"python", "versions", "cuda"}  # problems of the interpreter itself, not of the host


def step(found: Provision) -> float | None:
    return begin(found) if found.state == ProvisionState.QUEUED else look(found)


def begin(found: Provision) -> float | None:
    """Choose the base, put everything there, start the making."""
    _choose(found)
    what = wanted.of(found)
    place = wanted.folder(found.node, what)
    _same(found).update(python=str(place.python))  # before anything is started: what is cancelled is looked for there
    answer = remote.ask(found.node, found.base, lambda member, host: remote.start(member, host, what, place))
    _same(found).filter(state=ProvisionState.QUEUED).update(state=ProvisionState.RUNNING, **_told(answer))
    return 0.0


def _choose(found: Provision) -> None:
    """Check the base that was asked for; without one take the minor version that the cluster's other nodes have."""
    pythons = remote.ask(found.node, "", lambda member, host: find.pythons(host, found.base))
    find.keep(found.node_id, pythons)
    chosen = choose(pythons, found.base, _minor_of_others(found.node))
    if chosen is None and found.base:
        raise Refused([Problem("base", f"{found.base} is no Python on that node", "Choose one of those found.")])
    if chosen is None:
        listed = ", ".join(each.words for each in pythons) or "none was found"
        fix = "Install Python 3.11 or newer with venv on the node, or name one that lies elsewhere."
        raise Refused([Problem("base", f"no interpreter there can be built on ({listed})", fix)])
    if not chosen.fits:
        fix = "Choose one from 3.11 to 3.14 that has venv and ensurepip (Debian: python3-venv)."
        raise Refused([Problem("base", f"{chosen.words} does not do", fix)])
    found.base = chosen.path
    found.save(update_fields=["base"])


def _minor_of_others(node: Node) -> tuple[int, int] | None:
    for other in node.cluster.nodes.exclude(pk=node.pk).filter(removed_at=None).exclude(python=""):
        major, _, rest = str(other.facts.get("python", "")).partition(".")
        minor = rest.partition(".")[0]
        if major.isdecimal() and minor.isdecimal():
            return int(major), int(minor)
    return None


def look(found: Provision) -> float | None:
    """Write down what the node tells, for a few seconds; end it once the making has ended."""
    until = time.monotonic() + STAY_SECONDS
    answer = _status(found)
    while answer["state"] == "running" and time.monotonic() < until:
        time.sleep(BETWEEN_SECONDS)
        answer = _status(found)
    if answer["state"] == "running":
        return LOOK_SECONDS
    _same(found).update(tail=answer["tail"][-SHOWN:])
    _refuse_unless_made(answer)
    _finish(found)
    return None


def _status(found: Provision) -> Answer:
    """Ask the node how far it is, and write it down."""
    place = _place(found)
    answer = remote.ask(found.node, found.base, lambda member, host: remote.provision(member, host, "status", place))
    _same(found).update(**_told(answer))
    return answer


def _refuse_unless_made(answer: Answer) -> None:
    exit = answer["exit"]
    if answer["state"] != "ended":
        fix = "Try again: what was downloaded is kept."
        raise Refused([Problem("node", "the making was ended on the node, or the node was restarted", fix)])
    if exit.get("code") != 0:
        name = exit.get("step") or "?"
        why = f"the step {name} failed with status {exit.get('code')}"
        raise Refused([Problem(name, why, way_out(name, answer["tail"]))])


def _finish(found: Provision) -> None:
    """Take the interpreter where training works with it."""
    facts = remote.ask(found.node, found.python, remote.preflight)
    bad = [p for p in facts.get("problems", []) if p["field"] in OF_PYTHON]
    if bad:
        raise Refused([Problem(str(p["field"]), str(p["reason"]), str(p["fix"])) for p in bad])
    with transaction.atomic():
        if not _ended(found, ProvisionState.DONE):
            return
        told = f"interpreter made on {found.base}: {found.python}"
        actions.take_python(found.node, found.python, found.requested_by, told)
    dispatch.check_node(found.node_id)


def cancel(found: Provision) -> float | None:
    """End what goes on there; what was downloaded stays for a next try."""
    if found.python:  # else nothing was started
        remote.ask(found.node, found.base, lambda member, host: remote.stop(member, host, _place(found)))
    with transaction.atomic():
        if _ended(found, ProvisionState.CANCELLED, reason="stopped on request"):
            changes.record(found.node, found.cancelled_by, "the making of an interpreter was stopped")
    return None


def fail(found: Provision, problem: Problem) -> None:
    with transaction.atomic():
        if _ended(found, ProvisionState.FAILED, reason=problem.reason, fix=problem.fix):
            changes.record(found.node, "service", f"no interpreter was made: {problem.reason}"[:1000])


def _ended(found: Provision, state: ProvisionState, **also: Any) -> bool:
    """Return True for the one who ends it."""
    open_ = _same(found).filter(state__in=[ProvisionState.QUEUED, ProvisionState.RUNNING])
    return open_.update(state=state, ended_at=timezone.now(), **also) == 1


def _same(found: Provision) -> Any:
    return Provision.objects.filter(pk=found.pk)


def _told(answer: Answer) -> dict[str, Any]:
    return {
        "step": answer["step"],
        "number": answer["number"],
        "steps": answer["of"],
        "line": answer["line"],
        "seconds": answer.get("seconds", 0.0),
        "step_seconds": answer.get("step_seconds", 0.0),
        "heard_at": timezone.now(),
    }


def _place(found: Provision) -> VenvFolder:
    return VenvFolder(PurePosixPath(found.python).parents[1])
