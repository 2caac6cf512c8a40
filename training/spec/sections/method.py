"""Which weights are trained: all of them, or an adapter beside a base that stays as it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Section

ADAPTERS = ("rank", "alpha", "dropout", "target_modules", "modules_to_save", "rank_stabilised")
ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,199}$")]


class Method(Section):
    kind: Literal["full", "lora", "qlora"] = Field(
        "full",
        description="`full` trains every weight; `lora` a low-rank adapter; `qlora` one on a 4-bit base, on GPUs only.",
    )
    rank: int = Field(16, ge=1, le=1024, description="Rank of the adapter's two factors.")
    alpha: int = Field(32, ge=1, le=4096, description="The adapter's output is scaled by alpha / rank.")
    dropout: float = Field(0.05, ge=0, lt=1, description="Share of the adapter's inputs dropped while training.")
    target_modules: tuple[ModuleName, ...] = Field(
        (), description="Names of the layers that get an adapter. Empty: every linear layer but the head."
    )
    modules_to_save: tuple[ModuleName, ...] = Field(
        (), description="Layers trained whole beside the adapter, such as lm_head."
    )
    rank_stabilised: bool = Field(False, description="Scale by alpha / sqrt(rank) instead, for large ranks.")
    quantisation: Literal["nf4", "fp4"] = Field("nf4", description="4-bit number format of the base. For qlora.")
    double_quantisation: bool = Field(True, description="Quantise the 4-bit base's scales as well. For qlora.")

    @property
    def adapts(self) -> bool:
        """Whether an adapter is trained in place of the weights themselves."""
        return self.kind != "full"

    @model_validator(mode="after")
    def each_kind_has_its_parameters(self) -> Method:
        if self.kind == "full" and (given := self.changed(*ADAPTERS)):
            raise ValueError(
                f"{', '.join(given)}: of no use while kind is full, which trains every weight;"
                " set kind to lora or qlora, or leave them out"
            )
        if self.kind != "qlora" and self.changed("quantisation", "double_quantisation"):
            raise ValueError(
                "quantisation belongs to qlora; set kind to it: a 4-bit base learns through an adapter alone"
            )
        return self
