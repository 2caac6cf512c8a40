"""How weights move: optimizer, learning rate, batch, length."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Section

Schedule = Literal["cosine", "linear", "constant", "constant_with_warmup"]
Beta = Annotated[float, Field(ge=0, lt=1)]


class Optimisation(Section):
    optimizer: Literal["adamw_torch", "adamw_torch_fused", "paged_adamw_32bit", "paged_adamw_8bit"] = Field(
        "adamw_torch",
        description="Optimizer. The paged ones need bitsandbytes, a GPU and FSDP1; that a sharded save brings 8-bit"
        " moments back is not proven.",
    )
    learning_rate: float = Field(5e-5, gt=0, le=1, description="Peak learning rate.")
    schedule: Schedule = Field("cosine", description="Learning-rate schedule after the warm-up.")
    warmup_ratio: float = Field(0.03, ge=0, lt=1, description="Share of all steps used to warm up.")
    warmup_steps: int = Field(0, ge=0, description="Steps used to warm up; above 0 it counts in place of the ratio.")
    weight_decay: float = Field(0.01, ge=0, le=1, description="Decoupled weight decay.")
    betas: tuple[Beta, Beta] = Field((0.9, 0.999), description="Decay of AdamW's first and second moment.")
    epsilon: float = Field(1e-8, gt=0, le=1e-2, description="Added to AdamW's denominator.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    per_device_batch: int = Field(1, ge=1, le=1024, description="Rows per rank and forward pass.")
    accumulation: int = Field(1, ge=1, le=1024, description="Forward passes per optimizer step.")
    max_steps: int = Field(500, ge=1, le=10_000_000, description="Optimizer steps in all.")
    epochs: float = Field(
        0.0, ge=0, le=1000, description="Passes over the data; above 0 it counts in place of max_steps."
    )
    seed: int = Field(42, ge=0, lt=2**31, description="Seed of data order and initialisation.")
    log_every: int = Field(1, ge=1, description="Steps between two metric lines.")
    evaluate_every: int = Field(0, ge=0, description="Steps between two evaluations; 0 for none.")

    @model_validator(mode="after")
    def warm_up_ends_before_the_run(self) -> Optimisation:
        if not self.epochs and self.warmup_steps >= self.max_steps:
            raise ValueError(f"warmup_steps {self.warmup_steps} leaves nothing of {self.max_steps} steps; take fewer")
        return self
