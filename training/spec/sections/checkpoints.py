"""When sharded state is saved, and how much of it stays."""

from __future__ import annotations

from pydantic import Field

from .base import Section


class Checkpoints(Section):
    every_steps: int = Field(250, ge=1, description="Steps between two sharded checkpoints.")
    every_minutes: float = Field(
        0.0, ge=0, le=10_080, description="Minutes after which one is saved at the latest; 0: by steps alone."
    )
    keep: int = Field(3, ge=1, le=1000, description="Newest complete checkpoints kept per attempt.")
    asynchronous: bool = Field(
        False, description="Train on while a checkpoint is written, from a copy of this rank's shards in host memory."
    )
    at_end: bool = Field(True, description="Save at the last step.")
    timeout_seconds: int = Field(
        1800, ge=10, le=86400, description="Seconds that ranks wait for one that does not enter a save."
    )
