"""Which stored tensor belongs to which name of the model.

transformers renames what old or foreign checkpoints call differently, and changes some (experts that are stored one
by one and trained fused). Renames are followed with its own rules; a tensor that would have to be computed out of
others can't be read slice by slice, and is said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key

from ..spec.lint import Problem, Refused
from .stored import Stored, Unfit

SHOWN = 5


def placed(model: PreTrainedModel, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return the stored tensor for each name in the model's state dict that has one; a tied tensor has it once.

    Raises Unfit, and Refused where a tensor is missing, left over or of another shape.
    """
    state = model.state_dict(keep_vars=True)
    found = _renamed(model, stored, state)
    have = _tensors(found, state)
    missing = {name for name, tensor in state.items() if id(tensor) not in have}
    check_keys(model, missing, set(stored) - {where.key for where in found.values()})
    if made := sorted(name for name in missing if isinstance(state[name], torch.nn.Parameter)):
        raise Unfit(f"{made[0]} is in no file: the model makes it up")
    for name, where in found.items():
        if tuple(state[name].shape) != where.shape:
            what = f"{name} has shape {list(where.shape)} in the files and {list(state[name].shape)} in the model"
            raise Refused([Problem("model", what, "Put the config.json there that belongs to these weights.")])
    return found


def _renamed(
    model: PreTrainedModel, stored: Mapping[str, Stored], state: Mapping[str, torch.Tensor]
) -> dict[str, Stored]:
    rules = get_model_conversion_mapping(model)
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    found: dict[str, Stored] = {}
    for key in sorted(stored, key=dot_natural_key):
        name, converted = rename_source_key(key, renamings, converters, model.base_model_prefix, dict(state))
        if name not in state:
            name, converted = rename_source_key(key, [], [], model.base_model_prefix, dict(state))
        if name not in state:
            continue
        if converted is not None:
            raise Unfit(f"{name} is computed out of stored tensors such as {key}")
        if name in found:
            raise Unfit(f"{key} and {found[name].key} both belong to {name}")
        found[name] = stored[key]
    return found


def _tensors(found: Iterable[str], state: Mapping[str, torch.Tensor]) -> dict[int, str]:
    """Return the identity of each tensor that has a stored one, and its name.

    Raises Unfit where tied ones are stored twice: only a comparison could tell whether they are equal.
    """
    names: dict[int, str] = {}
    for name in found:
        other = names.setdefault(id(state[name]), name)
        if other != name:
            raise Unfit(f"{other} and {name} are tied in the model and stored twice")
    return names


def check_keys(model: PreTrainedModel, missing: Iterable[str], left: Iterable[str]) -> None:
    """Raise Refused where the model lacks tensors or the files have others, beyond what the model says it ignores."""
    lacking = _not_ignored(missing, model._keys_to_ignore_on_load_missing or ())
    old = (r"rotary_emb\.inv_freq", r"(^|\.)position_ids$")  # stored by older versions, computed by all of today's
    over = _not_ignored(left, (*(model._keys_to_ignore_on_load_unexpected or ()), *old))
    problems = [
        Problem("model", f"{len(names)} {words}: {_some(names)}", "Take the folder whole, as it was published.")
        for names, words in (
            (lacking, "tensors of the model are not in its files"),
            (over, "tensors in the files are not of this model"),
        )
        if names
    ]
    if problems:
        raise Refused(problems)


def _not_ignored(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not any(re.search(pattern, name) for pattern in patterns))


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
