"""Who can be asked: a run's base and its ready exports; and on which node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.spec.lint import Problem, Refused
from webapp.deliveries.models import Delivery
from webapp.deliveries.models.delivery import DeliveryState
from webapp.fleet.models import Node
from webapp.runs.models import Attempt, Export, Run
from webapp.runs.states import ExportState, RunState

BASE = "base"


def ready_exports(run: Run) -> list[Export]:
    """Return the exports that can be asked, the newest step first."""
    rows = Export.objects.filter(checkpoint__attempt__run=run, state=ExportState.READY)
    return list(rows.select_related("checkpoint__attempt", "node").order_by("-checkpoint__step", "-pk"))


def name_of(export: Export | None) -> str:
    """Return how it is called beside others: step, number format, and what is special about it."""
    if export is None:
        return BASE
    run = export.run
    parts = [f"step {export.checkpoint.step}", export.shown_dtype]
    if export.adapter != "none":
        parts.append("adapter" if export.adapter == "adapter" else "merged")
    if run.state == RunState.SUCCEEDED and export.checkpoint.step == run.total_steps:
        parts.append("final")
    return f"{' · '.join(parts)} (export {export.pk})"


def attempt_of(run: Run, exports: Sequence[Export]) -> Attempt:
    """Return the attempt whose journal tells of the trial: the newest export's, else the run's newest."""
    found = exports[0].attempt if exports else run.attempt
    if found is None:
        raise Refused([Problem("models", "the run was never launched", "Launch it, then ask its base or an export.")])
    return found


@dataclass(frozen=True)
class Copy:
    """A whole copy of an export on a node."""

    node: Node
    folder: str


def copies(export: Export) -> list[Copy]:
    """Return where a ready export lies: where it was made, then where it was sent."""
    found = [Copy(export.node, str(export.folder.model))] if export.node else []
    sent = Delivery.objects.filter(export=export, state=DeliveryState.DONE).exclude(to_node=None)
    for delivery in sent.select_related("to_node"):
        if delivery.to_node:
            found.append(Copy(delivery.to_node, delivery.target["folder"]))
    return found


def place(run: Run, exports: Sequence[Export]) -> tuple[Node, dict[int, str]]:
    """Return a node that has all of them, and the folder of each there. Raises Refused."""
    known = {export.pk: copies(export) for export in exports}
    everywhere = [{copy.node for copy in found} for found in known.values()]
    node: Node | None = _first(run)
    if everywhere:
        first = (copy.node for copy in known[exports[0].pk])
        node = next((node for node in first if all(node in nodes for nodes in everywhere)), None)
        if node is None:
            raise Refused([_apart(known)])
    if node is None:
        raise Refused([Problem("models", f"{run.cluster} has no node in service", "Return one to service.")])
    if not node.in_service or not node.host_key:
        raise Refused([Problem("models", f"node {node.name} is out of service", "Return it to service.")])
    return node, {pk: next(copy.folder for copy in found if copy.node == node) for pk, found in known.items()}


def _apart(known: dict[int, list[Copy]]) -> Problem:
    where = [f"export {pk} is on {', '.join(copy.node.name for copy in found)}" for pk, found in known.items()]
    return Problem("models", " and ".join(where), "Send one to the other's node, or ask them one by one.")


def _first(run: Run) -> Node | None:
    """Any node has the base: the first that no run holds, else the first."""
    ready = run.cluster.nodes.filter(in_service=True).exclude(host_key="").order_by("name")
    return ready.filter(claims=None).first() or ready.first()
