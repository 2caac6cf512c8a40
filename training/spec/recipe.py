"""The recipe: the typed, validated description of a fine-tune.

One class describes the form, the API's schema, the YAML file and what the ranks read; its sections lie in
`sections`. Unknown fields are refused, so a typing error never trains silently.
"""

from __future__ import annotations

from typing import Annotated, Literal

import yaml
from pydantic import Field, model_validator

from .sections.base import Section
from .sections.checkpoints import Checkpoints
from .sections.data import Data
from .sections.export import Export
from .sections.fsdp import Fsdp
from .sections.limits import Limits
from .sections.method import Method
from .sections.model import Model
from .sections.optimisation import Optimisation
from .sections.prompts import Prompts
from .sections.trackers import Trackers

VERSION: Literal[1] = 1


class Recipe(Section):
    """A fine-tune: what is trained how, without saying where."""

    version: Literal[1] = Field(VERSION, description="Version of this schema.")
    model: Model = Field(default_factory=Model)
    method: Method = Field(default_factory=Method)
    data: Data = Field(default_factory=Data)
    optimisation: Optimisation = Field(default_factory=Optimisation)
    precision: Literal["bf16", "fp32", "fp16"] = Field(
        "bf16", description="Number format of forward and backward. fp16 scales the loss and needs a GPU."
    )
    master_weights: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="Number format of the weights that the optimizer moves. bf16 loses small updates. An adapter's base"
        " is not moved: under FSDP2 it is in `precision`; under FSDP1, where a wrap unit has one format, in the"
        " adapter's. A qlora adapter is always bf16, as its base is stored.",
    )
    fsdp: Fsdp = Field(default_factory=Fsdp)
    checkpoints: Checkpoints = Field(default_factory=Checkpoints)
    export: Export = Field(default_factory=Export)
    limits: Limits = Field(default_factory=Limits)
    trackers: Trackers = Field(default_factory=Trackers)
    prompts: Prompts = Field(default_factory=Prompts)

    @model_validator(mode="after")
    def number_formats_go_together(self) -> Recipe:
        if self.master_weights == "bf16" and self.precision != "bf16":
            raise ValueError("master_weights bf16 goes with precision bf16 alone; set one of them otherwise")
        if self.method.kind == "qlora" and self.precision != "bf16":
            raise ValueError(
                "a qlora base lies in bf16 tensors, which no other precision may cast; set precision to bf16"
            )
        return self

    @model_validator(mode="after")
    def the_version_can_do_it(self) -> Recipe:
        if self.fsdp.version == 1 and self.checkpoints.asynchronous:
            raise ValueError(
                "checkpoints.asynchronous copies shards with a part of torch that knows FSDP2's alone; set it to false,"
                " or fsdp.version to 2"
            )
        if self.fsdp.version == 2 and self.optimisation.optimizer.startswith("paged_"):
            raise ValueError(
                "a paged optimizer under FSDP2 is reported to end in illegal memory accesses in bitsandbytes; set"
                " optimisation.optimizer to adamw_torch, or fsdp.version to 1"
            )
        return self

    @model_validator(mode="after")
    def an_adapter_is_there_to_export(self) -> Recipe:
        if not self.method.adapts and self.export.changed("adapter"):
            raise ValueError("export.adapter is of no use while method.kind is full; leave it out, or set kind to lora")
        return self

    @model_validator(mode="after")
    def a_chat_needs_rows_that_are_chats(self) -> Recipe:
        if self.data.format != "messages" and any(not isinstance(ask, str) for ask in self.prompts.ask):
            raise ValueError(f"prompts.ask holds a chat, and data.format is {self.data.format}; give texts alone")
        return self

    @model_validator(mode="after")
    def what_is_exported_is_saved(self) -> Recipe:
        if self.export.at_end and not self.checkpoints.at_end:
            raise ValueError("export.at_end exports the last step's checkpoint; set checkpoints.at_end to true")
        return self

    @model_validator(mode="after")
    def what_is_best_is_evaluated(self) -> Recipe:
        if self.checkpoints.by_evaluation and not self.optimisation.evaluate_every:
            raise ValueError(
                "checkpoints.keep_best goes by eval_loss and nothing is evaluated; set optimisation.evaluate_every,"
                f" best to {self.checkpoints.every_steps}, or checkpoints.best_metric to loss"
            )
        return self

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


Overrides = Annotated[dict[str, object], Field(description="Nested recipe fields that differ from the preset.")]


def merge(base: dict[str, object], overrides: dict[str, object]) -> dict[str, object]:
    """Return `base` with `overrides` laid over it, section by section. Neither is changed."""
    out = dict(base)
    for key, value in overrides.items():
        old = out.get(key)
        out[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out
