"""The full state dict at the end."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Section

FORMATS = ("bfloat16", "float16", "float32")
NumberFormat = Literal["base", "bfloat16", "float16", "float32"]


class Export(Section):
    at_end: bool = Field(False, description="Export the full state dict when training has finished.")
    dtype: NumberFormat = Field(
        "base", description="Number format of the export; base: as the base model is stored, bf16 where it is bf16."
    )
    shard_gigabytes: float = Field(5.0, ge=0.001, le=100, description="Largest file of the export, in 10^9 bytes.")
    adapter: Literal["merged", "adapter"] = Field(
        "merged", description="What an adapter's run exports: a model of its own, or the adapter alone."
    )
