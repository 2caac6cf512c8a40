"""How the model is sharded over ranks, and how its weights get there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Section

ClassName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


FSDP1_ONLY = ("sync_module_states", "backward_prefetch", "forward_prefetch")


class Fsdp(Section):
    version: Literal[1, 2] = Field(2, description="FSDP1 needs GPUs; FSDP2 also runs on CPU.")
    sharding: Literal["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD"] = Field(
        "FULL_SHARD",
        description="FULL_SHARD frees parameters after forward (FSDP2: reshard_after_forward), SHARD_GRAD_OP keeps"
        " them until backward; HYBRID_SHARD shards within a node, NO_SHARD copies: both FSDP1 only.",
    )
    wrap_policy: Literal["TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP"] = Field(
        "TRANSFORMER_BASED_WRAP", description="Each decoder layer is one FSDP unit, or each part of a size."
    )
    wrap_classes: tuple[ClassName, ...] = Field((), description="Layer classes to wrap; empty: derived from the model.")
    wrap_parameters: int = Field(
        100_000_000, ge=1, description="Parameters from which a part is a unit, for SIZE_BASED_WRAP."
    )
    cpu_offload: bool = Field(False, description="Keep parameters and gradients in host memory.")
    weights: Literal["auto", "slices", "broadcast", "accelerate"] = Field(
        "auto",
        description="How weights reach the shards under FSDP2. `slices`: each rank reads its own from the model folder;"
        " `broadcast`: rank 0 reads and sends, tensor by tensor; `auto`: slices where every node has the folder;"
        " `accelerate`: that library's own loading.",
    )
    ram_efficient_loading: bool = Field(
        True, description="FSDP1, or accelerate's own loading: only rank 0 loads the weights, the others receive them."
    )
    sync_module_states: bool = Field(True, description="FSDP1: broadcast rank 0's weights at wrap time.")
    backward_prefetch: Literal["BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"] = Field(
        "BACKWARD_PRE", description="FSDP1: when the next unit's parameters are gathered in backward."
    )
    forward_prefetch: bool = Field(False, description="FSDP1: gather the next unit's parameters in forward.")
    activation_checkpointing: bool = Field(True, description="Recompute activations in the backward pass.")

    @model_validator(mode="after")
    def loading_needs_sync(self) -> Fsdp:
        if self.version == 1 and self.ram_efficient_loading and not self.sync_module_states:
            raise ValueError(
                "ram_efficient_loading without sync_module_states trains other ranks on empty weights;"
                " set sync_module_states to true"
            )
        return self

    @model_validator(mode="after")
    def version_has_it(self) -> Fsdp:
        if self.version == 2 and self.sharding in ("HYBRID_SHARD", "NO_SHARD"):
            raise ValueError(f"sharding {self.sharding} exists in FSDP1 only; set version to 1, or take FULL_SHARD")
        if self.version == 2 and (given := self.changed(*FSDP1_ONLY)):
            raise ValueError(f"{given[0]} is read by FSDP1 only; leave it out, or set version to 1")
        if self.version == 1 and self.changed("weights"):
            raise ValueError(
                "weights is read by FSDP2 only: FSDP1 loads whole on a node's first rank, as ram_efficient_loading"
                " says; leave it at auto, or set version to 2"
            )
        return self

    @model_validator(mode="after")
    def sharded_state_can_be_saved(self) -> Fsdp:
        if self.sharding == "NO_SHARD":
            raise ValueError(
                "NO_SHARD keeps every weight whole, of which torch writes no sharded checkpoint; take SHARD_GRAD_OP"
            )
        return self

    @model_validator(mode="after")
    def wrapping_is_said_once(self) -> Fsdp:
        if self.wrap_policy == "SIZE_BASED_WRAP":
            if self.version == 2:  # accelerate would wrap the list of layers itself, which has no forward
                raise ValueError("SIZE_BASED_WRAP works with FSDP1 only; take TRANSFORMER_BASED_WRAP, or version 1")
            if self.wrap_classes:
                raise ValueError("wrap_classes are not read with SIZE_BASED_WRAP; leave them empty")
        elif self.changed("wrap_parameters"):
            raise ValueError("wrap_parameters is read with SIZE_BASED_WRAP only; leave it out, or set wrap_policy")
        return self
