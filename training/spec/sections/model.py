"""What is trained: the base model and how it computes attention."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Section

Attention = Literal["auto", "sdpa", "eager", "flash_attention_2"]


class Model(Section):
    name: str = Field(
        "",
        max_length=500,
        description="Folder or hub id of the base model. Empty: chosen beside the recipe, as on the site.",
    )
    revision: str = Field("", max_length=200, description="Branch, tag or commit of a hub id. Empty: its main branch.")
    attention: Attention = Field(
        "auto", description="Attention kernel. `auto` takes Flash Attention 2 where installed, else SDPA."
    )
    trust_remote_code: bool = Field(False, description="Run Python code that the model folder brings.")
