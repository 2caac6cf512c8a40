"""What the recipe asks of PEFT, checked against the model first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import torch
from peft import LoraConfig
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ..spec.lint import Problem, Refused
from ..spec.sections.method import Method

LINEAR = (torch.nn.Linear, Conv1D)
EVERY = "all-linear"  # PEFT's word for every linear layer but the head


def lora_config(method: Method, model: PreTrainedModel) -> LoraConfig:
    """Return PEFT's configuration; raise Refused where it names what the model has not."""
    if found := [*_target_problems(method, model), *_whole_problems(method, model)]:
        raise Refused(found)
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=method.rank,
        lora_alpha=method.alpha,
        lora_dropout=method.dropout,
        use_rslora=method.rank_stabilised,
        target_modules=list(method.target_modules) or EVERY,
        modules_to_save=list(method.modules_to_save) or None,
    )


def _target_problems(method: Method, model: PreTrainedModel) -> Iterable[Problem]:
    head = model.get_output_embeddings()
    for name in method.target_modules:
        modules = _called(model, name)
        if not modules:
            linear = {n.rsplit(".", 1)[-1] for n, m in model.named_modules() if isinstance(m, LINEAR) and m is not head}
            yield Problem("method.target_modules", f"the model has no layer {name}", _nearest(name, linear))
        elif any(module is head for module in modules):
            fix = "Name it in modules_to_save: it is then trained whole."
            yield Problem("method.target_modules", f"an adapter on the head {name} is never trained", fix)
        elif odd := next((m for m in modules if not isinstance(m, LINEAR)), None):
            reason = f"{name} is a {type(odd).__name__}, no linear layer"
            yield Problem("method.target_modules", reason, "Name it in modules_to_save: it is then trained whole.")


def _whole_problems(method: Method, model: PreTrainedModel) -> Iterable[Problem]:
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    tied = getattr(ends[0], "weight", 0) is getattr(ends[1], "weight", 1)
    for name in method.modules_to_save:
        modules = _called(model, name)
        if not modules:
            names = {n.rsplit(".", 1)[-1] for n, _ in model.named_modules() if n}
            yield Problem("method.modules_to_save", f"the model has no layer {name}", _nearest(name, names))
        elif tied and any(module in ends for module in modules):
            reason = f"the model ties {name} to its other end, and a copy trained whole would come loose"
            yield Problem("method.modules_to_save", reason, "Leave it out, or take a model with untied embeddings.")


def _called(model: torch.nn.Module, name: str) -> list[torch.nn.Module]:
    """Return the modules that PEFT takes `name` for: those of this name, or whose name ends in it."""
    return [m for n, m in model.named_modules() if n == name or n.endswith(f".{name}")]


def _nearest(name: str, there: set[str]) -> str:
    near = difflib.get_close_matches(name, there, n=1)
    return f"Did you mean {near[0]}?" if near else f"Known: {', '.join(sorted(there))}."
