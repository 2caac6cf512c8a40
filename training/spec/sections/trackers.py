"""Other places that are told the same figures as our own events."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Section


class Trackers(Section):
    names: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = Field(
        (), description="Trackers to report to, from rank 0. Each has to be installed on the nodes."
    )
    project: str = Field(
        "shardboard", pattern=r"^[A-Za-z0-9._-]{1,100}$", description="Project or experiment to report under."
    )
