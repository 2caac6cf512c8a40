"""The exact files and commands of a launch, for people: from the same pure plan that the workers follow."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.spec.lint import Problem, Refused
from training.spec.plan import Launch, NodePlan, NodeSlot, Target, plan_attempt
from training.spec.recipe import Recipe

from . import actions, rank_env
from .models import Run
from .queue.board import slots

# What the workers settle at launch; until then the page shows these.
PORT_LATER, RELEASE_LATER = 0, "CODE-HASH"
OURS = {"TOKENIZERS_PARALLELISM", "PYTHONUNBUFFERED", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
        "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HF_HUB_OFFLINE"}  # fmt: skip


@dataclass(frozen=True)
class NodeFiles:
    """One node's share as text. `env` shows our own settings; the value of anything else is hidden."""

    name: str
    rank: int
    folder: str
    files: list[tuple[str, str]]
    env: str
    command: str


@dataclass(frozen=True)
class LaunchFiles:
    """`settled`: the run's number, port and code hash are those of a real launch."""

    nodes: list[NodeFiles] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    settled: bool = False


def launch_files(run: Run) -> LaunchFiles:
    """Return what the newest attempt was launched with, or what a launch now would use."""
    attempt = run.attempt
    placed = [p.node_slot() for p in attempt.placements.order_by("rank")] if attempt else []
    try:
        wanted = placed or slots(run.cluster, run.wished())
    except Refused as refused:
        return LaunchFiles(problems=refused.problems)
    from_step = attempt.resume_from if attempt else None
    return planned(
        run.parsed_recipe(),
        actions.target_of(run),
        wanted,
        run=run.pk,
        attempt=attempt.number if attempt else 1,
        port=attempt.port if attempt else PORT_LATER,
        release=(attempt.release if attempt else "") or RELEASE_LATER,
        resume=(from_step.attempt.number, from_step.step) if from_step else None,
    )


def planned(
    recipe: Recipe,
    target: Target,
    slots: Sequence[NodeSlot],
    *,
    run: int,
    attempt: int = 1,
    port: int = PORT_LATER,
    release: str = RELEASE_LATER,
    resume: tuple[int, int] | None = None,
) -> LaunchFiles:
    try:
        env = rank_env.shown(target.model)
        plans = plan_attempt(recipe, target, slots, Launch(run, attempt, port, release, resume, env=env))
    except Refused as refused:
        return LaunchFiles(problems=refused.problems)
    return LaunchFiles([as_text(plan) for plan in plans], settled=port != PORT_LATER and release != RELEASE_LATER)


def as_text(plan: NodePlan) -> NodeFiles:
    env = "\n".join(f"{key}={value if key in OURS else rank_env.HIDDEN}" for key, value in plan.env.items())
    return NodeFiles(
        plan.node.name, plan.rank, str(plan.folder.path), list(plan.files.items()), env, shlex.join(plan.argv)
    )
