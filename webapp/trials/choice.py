"""Who can be asked: a run's base and its ready exports; and on which node."""

from __future__ import annotations

from collections.abc import Sequence

from training.spec.lint import Problem, Refused
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


def node_of(run: Run, exports: Sequence[Export]) -> Node:
    """Return the node that has all of them. Raises Refused."""
    holders = {export.node: export.pk for export in exports if export.node is not None}
    if len(holders) > 1:
        where = " and ".join(f"export {pk} is on {node.name}" for node, pk in holders.items())
        raise Refused([Problem("models", where, "Copy one to the other's node, or ask them one by one.")])
    node = next(iter(holders), None) or _first(run)
    if node is None:
        raise Refused([Problem("models", f"{run.cluster} has no node in service", "Return one to service.")])
    if not node.in_service or not node.host_key:
        raise Refused([Problem("models", f"node {node.name} is out of service", "Return it to service.")])
    return node


def _first(run: Run) -> Node | None:
    """Any node has the base: the first that no run holds, else the first."""
    ready = run.cluster.nodes.filter(in_service=True).exclude(host_key="").order_by("name")
    return ready.filter(claim=None).first() or ready.first()
