"""The adapter's weights in a sharded checkpoint: what is trained, and nothing of the base.

Not by accelerate's `adapter_only`: it asks PEFT, which looks for its tensors under the names of its modules. Under
activation checkpointing those have the wrapper's name in between and the tensors have not, so that a checkpoint
without a single weight is saved, and loaded, in silence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict

from .names import clean, saved_name

TRAINED = StateDictOptions(ignore_frozen_params=True, strict=False)


def trained(model: Any) -> dict[str, torch.Tensor]:
    """Return this rank's part of what is trained, by the names of an adapter's folder. The tensors are the live ones.

    Every rank must call.
    """
    wanted = [clean(name) for name, parameter in model.named_parameters() if parameter.requires_grad]
    state = get_model_state_dict(model, options=TRAINED)  # torch keeps the second name of a frozen tied tensor in it
    return {saved_name(name): state[name] for name in wanted}


def load(model: Any, folder: Path) -> None:
    """Read this rank's part of each trained weight out of `folder`, for any number of ranks. Every rank must call.

    Raises torch's CheckpointException where one is not there.
    """
    names = {saved_name(clean(n)): clean(n) for n, parameter in model.named_parameters() if parameter.requires_grad}
    stored = trained(model)
    dcp.load({"model": stored}, checkpoint_id=folder)
    set_model_state_dict(model, {names[name]: tensor for name, tensor in stored.items()}, options=TRAINED)
