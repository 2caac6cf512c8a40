"""The recipe: the typed, validated description of a fine-tune.

One class describes the form, the API's schema, the YAML file and what the ranks read. Units stand
in each field's description. Unknown fields are refused, so a typing error never trains silently.
"""

from __future__ import annotations

from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

VERSION: Literal[1] = 1
ClassName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class Section(BaseModel):
    """Common behaviour: unknown keys are errors, values are frozen and never NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def a_switch_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        """Python takes true for 1: a learning rate of `true` would train."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError("Input should be a number")
        return value


class Model(Section):
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = Field(
        "auto", description="Attention kernel. `auto` takes Flash Attention 2 where installed, else SDPA."
    )
    trust_remote_code: bool = Field(False, description="Run Python code that the model folder brings.")


class Data(Section):
    format: Literal["messages", "text"] = Field(
        "messages", description="`messages`: role/content turns through the chat template. `text`: ready-made text."
    )
    text_field: str = Field(
        "content", pattern=r"^[^\x00-\x1f]{1,100}$", description="Column to read when format is text."
    )
    max_length: int = Field(1024, ge=16, le=131072, description="Tokens a row may have; longer rows are cut.")
    packing: bool = Field(False, description="Fill each row up to max_length with several samples.")


class Optimisation(Section):
    optimizer: Literal["adamw_torch", "adamw_torch_fused", "paged_adamw_32bit", "paged_adamw_8bit"] = Field(
        "adamw_torch", description="Optimizer. The paged ones need bitsandbytes and a GPU."
    )
    learning_rate: float = Field(5e-5, gt=0, le=1, description="Peak learning rate.")
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = Field(
        "cosine", description="Learning-rate schedule after the warm-up."
    )
    warmup_ratio: float = Field(0.03, ge=0, lt=1, description="Share of all steps used to warm up.")
    weight_decay: float = Field(0.01, ge=0, le=1, description="Decoupled weight decay.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    per_device_batch: int = Field(1, ge=1, le=1024, description="Rows per rank and forward pass.")
    accumulation: int = Field(1, ge=1, le=1024, description="Forward passes per optimizer step.")
    max_steps: int = Field(500, ge=1, le=10_000_000, description="Optimizer steps in all.")
    seed: int = Field(42, ge=0, lt=2**31, description="Seed of data order and initialisation.")
    log_every: int = Field(1, ge=1, description="Steps between two metric lines.")
    evaluate_every: int = Field(0, ge=0, description="Steps between two evaluations; 0 for none.")


class Fsdp(Section):
    version: Literal[1, 2] = Field(2, description="FSDP1 needs GPUs; FSDP2 also runs on CPU.")
    sharding: Literal["FULL_SHARD", "SHARD_GRAD_OP"] = Field(
        "FULL_SHARD", description="FULL_SHARD frees parameters after forward (FSDP2: reshard_after_forward)."
    )
    wrap_policy: Literal["TRANSFORMER_BASED_WRAP"] = Field(
        "TRANSFORMER_BASED_WRAP", description="Each decoder layer is one FSDP unit."
    )
    wrap_classes: tuple[ClassName, ...] = Field((), description="Layer classes to wrap; empty: derived from the model.")
    cpu_offload: bool = Field(False, description="Keep parameters and gradients in host memory.")
    ram_efficient_loading: bool = Field(True, description="Only rank 0 loads the weights; the others receive them.")
    sync_module_states: bool = Field(True, description="FSDP1: broadcast rank 0's weights at wrap time.")
    activation_checkpointing: bool = Field(True, description="Recompute activations in the backward pass.")

    @model_validator(mode="after")
    def loading_needs_sync(self) -> Fsdp:
        if self.version == 1 and self.ram_efficient_loading and not self.sync_module_states:
            raise ValueError(
                "ram_efficient_loading without sync_module_states trains other ranks on empty weights;"
                " set sync_module_states to true"
            )
        return self


class Checkpoints(Section):
    every_steps: int = Field(250, ge=1, description="Steps between two sharded checkpoints.")
    keep: int = Field(3, ge=1, le=1000, description="Newest complete checkpoints kept per attempt.")


class Export(Section):
    at_end: bool = Field(False, description="Export the full state dict when training has finished.")
    dtype: Literal["bfloat16", "float16", "float32"] = Field("bfloat16", description="Number format of the export.")


class Limits(Section):
    non_finite_steps: int = Field(3, ge=1, description="Stop after this many steps in a row with NaN or infinite loss.")
    stop_seconds: int = Field(
        600,
        ge=10,
        le=86400,
        description="Seconds between a request to stop and an end by force; a save has to fit in.",
    )


class Recipe(Section):
    """A fine-tune: what is trained how, without saying where."""

    version: Literal[1] = Field(VERSION, description="Version of this schema.")
    model: Model = Field(default_factory=Model)
    data: Data = Field(default_factory=Data)
    optimisation: Optimisation = Field(default_factory=Optimisation)
    precision: Literal["bf16", "fp32"] = Field(
        "bf16", description="Compute precision; master weights are fp32 in both."
    )
    fsdp: Fsdp = Field(default_factory=Fsdp)
    checkpoints: Checkpoints = Field(default_factory=Checkpoints)
    export: Export = Field(default_factory=Export)
    limits: Limits = Field(default_factory=Limits)

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
