"""What the base model's config says the tensors are: names, shapes, ties. No weights are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.conversion_mapping import get_model_conversion_mapping

from ..spec.job import ExportJob
from ..spec.lint import Problem, Refused
from .distcp import Stored
from .outcome import refuse

SHOWN = 5
WRONG_BASE = "Export with the base model that this run was trained from."


@dataclass(frozen=True)
class Blueprint:
    """`shapes` in the model's own order, tied names included; `ties` maps a tied name to the one that is kept.

    `vocabulary`: the names of those that have a row for each token.
    """

    shapes: dict[str, tuple[int, ...]]
    ties: dict[str, str]
    vocabulary: frozenset[str] = frozenset()

    def kept(self) -> list[str]:
        """Return the names that a standard model folder stores."""
        return [name for name in self.shapes if name not in self.ties]


def load_config(job: ExportJob) -> Any:
    """Return the base model's config; raise Refused where there is none to read."""
    try:
        return AutoConfig.from_pretrained(
            job.model, revision=job.revision or None, trust_remote_code=job.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise refuse("model", f"no config can be read from {job.model}: {_first_line(error)}", WRONG_BASE) from error


def blueprint(config: Any, *, trust_remote_code: bool = False) -> Blueprint:
    """Build the model on the meta device and return its names and shapes; raise Refused where that can't be."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)
    if get_model_conversion_mapping(model, add_legacy=False):
        raise refuse(
            "model",
            f"{type(model).__name__} is stored under other names than it is trained under",
            "Gather it with accelerate's FULL_STATE_DICT save instead.",
        )
    ignored = set(model._keys_to_ignore_on_save or ())
    shapes = {name: tuple(t.shape) for name, t in model.state_dict().items() if name not in ignored}
    ties = {k: v for k, v in model.all_tied_weights_keys.items() if k in shapes}
    return Blueprint(shapes, ties, frozenset(_of_vocabulary(model) & shapes.keys()))


def _of_vocabulary(model: Any) -> set[str]:
    ends = [end for end in (model.get_input_embeddings(), model.get_output_embeddings()) if end is not None]
    named = [name for name, module in model.named_modules() if any(module is end for end in ends)]
    return {f"{name}.{part}" for name in named for part in ("weight", "bias")}


def check(plan: Blueprint, tensors: Mapping[str, Stored]) -> None:
    """Raise Refused unless the checkpoint holds exactly the tensors of `plan`, in its shapes."""
    missing = [name for name in plan.kept() if name not in tensors]
    unexpected = [name for name in tensors if name not in plan.shapes]
    shapes = [
        f"{name} is {list(tensors[name].shape)} in the checkpoint and {list(shape)} by the config"
        for name, shape in plan.shapes.items()
        if name in tensors and tensors[name].shape != shape
    ]
    found = [
        Problem("model", f"{what}: {_some(names)}", WRONG_BASE)
        for what, names in (
            ("the checkpoint lacks tensors of this model", missing),
            ("the checkpoint holds tensors that this model has not", unexpected),
            ("shapes differ", shapes),
        )
        if names
    ]
    if found:
        raise Refused(found)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
