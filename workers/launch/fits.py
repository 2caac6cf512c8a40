"""Whether the model fits into a node's memory, by the node's own answer, before anything large is moved.

The ranks ask again when they have the model before them; then it may be less that is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training.spec.hostmemory import Load, memory_problem, needed, way_of
from training.spec.lint import Problem
from training.spec.recipe import Recipe

from ..group import Member


def problems(recipe: Recipe, members: Sequence[Member], member: Member, facts: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong where loading or training needs more than the node has; nothing where it can't be told."""
    parameters, available = facts.get("model_parameters"), facts.get("ram_available")
    if not parameters or available is None:
        return []
    slot = member.slot
    load = Load(
        parameters=parameters,
        trained=0 if recipe.method.adapts else parameters,
        world_size=sum(m.slot.processes for m in members),
        local_ranks=slot.processes,
        way=way_of(recipe),
        on_host=not slot.accelerator or recipe.fsdp.cpu_offload,
    )
    found = memory_problem(member.name, needed(load, recipe), available, facts["ram_total"], load.way)
    return [found] if found else []
