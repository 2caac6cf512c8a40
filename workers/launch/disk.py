"""Whether a run's checkpoints fit on its nodes' disks, by the nodes' own answers, before anything large is moved.

How many bytes one takes is an estimate here: what clearly can't be saved is refused, what may get tight is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training.spec.bytes_on_disk import Shape, checkpoint_bytes, node_share, trained
from training.spec.forecast import Course, Disk, disk_problem, look_shared, outlook
from training.spec.lint import Problem
from training.spec.recipe import Recipe

from ..group import Member

WAY_OUT = "Keep fewer checkpoints, save less often, or free space there."


def problems(
    recipe: Recipe, course: Course, members: Sequence[Member], member: Member, facts: Mapping[str, Any]
) -> list[Problem]:
    """Return what is wrong where even two checkpoints don't fit; nothing where it can't be told.

    A node's own part is reckoned with, as on a private disk: a shared one has to hold more.
    """
    there = _disk(recipe, members, member, facts, shared=False)
    found = disk_problem(member.name, recipe.checkpoints, course, there) if there else None
    return [found] if found else []


def warnings(
    recipe: Recipe,
    course: Course,
    members: Sequence[Member],
    facts: Mapping[str, Mapping[str, Any]],
    shared: bool | None = None,
) -> list[str]:
    """Return a sentence for each node whose disk will be full before the run is over, as far as the rule can tell.

    `shared`: whether the nodes were seen to share one disk; None: it is guessed from what they say of it.
    """
    answers = [facts[member.name] for member in members]
    if shared is None:
        shared = look_shared([(answer.get("disk_total") or 0, answer.get("disk_free") or 0) for answer in answers])
    found = []
    for member in members[:1] if shared else members:
        there = _disk(recipe, members, member, facts[member.name], shared=shared)
        seen = outlook(recipe.checkpoints, course, there) if there else None
        if seen and not seen.fits:
            where = f"disk of node {member.name}" + (", which seems to be all nodes'" if shared else "")
            found.append(f"{where}, checkpoints as estimated: {seen.sentence}. {WAY_OUT}")
    return found


def _disk(
    recipe: Recipe, members: Sequence[Member], member: Member, facts: Mapping[str, Any], *, shared: bool
) -> Disk | None:
    shape, free = Shape.of(facts.get("model_shape")), facts.get("disk_free")
    if shape is None or free is None:
        return None
    world = sum(m.slot.processes for m in members)
    whole = checkpoint_bytes(trained(shape, recipe), recipe, world)
    return Disk(free, whole if shared else node_share(whole, member.slot.processes, world))
