"""Whether a node's memory holds what is about to be loaded: asked before the first weight is read."""

from __future__ import annotations

import socket

from torch import nn

from ..cpu_fsdp import accelerator_present
from ..memory import memory
from ..ranks import Ranks
from ..spec.hostmemory import Load, memory_problem, needed
from ..spec.lint import Refused
from ..spec.recipe import Recipe


def check_fits(model: nn.Module, recipe: Recipe, way: str, ranks: Ranks) -> None:
    """Raise Refused, for each node where it doesn't fit. `model` may be empty; all ranks call, together.

    A model whose adapter is not there yet is counted as if all of it were trained only where all of it is.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    nodes = ranks.gather(ranks.node_rank)
    load = Load(
        parameters=parameters,
        trained=0 if recipe.method.adapts else parameters,
        world_size=ranks.world_size,
        local_ranks=nodes.count(ranks.node_rank),
        way=way,
        on_host=not accelerator_present() or recipe.fsdp.cpu_offload,
    )
    here = memory()
    found = memory_problem(socket.gethostname(), needed(load, recipe), here.available, here.total, way)
    told = ranks.gather(found if ranks.is_local_main else None)
    if problems := [problem for problem in told if problem]:
        raise Refused(problems)
