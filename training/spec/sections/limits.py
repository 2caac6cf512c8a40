"""What a run may take before it is ended."""

from __future__ import annotations

from pydantic import Field

from .base import Section


class Limits(Section):
    hours: float = Field(
        0.0, ge=0, le=8760, description="Hours of training in one attempt after which it saves and stops; 0: none."
    )
    non_finite_steps: int = Field(
        3, ge=1, description="Stop after this many steps in a row with NaN or infinite loss or gradient."
    )
    stop_seconds: int = Field(
        600,
        ge=10,
        le=86400,
        description="Seconds between a request to stop and an end by force; a save has to fit in.",
    )
    hang_seconds: int = Field(
        600, ge=10, le=86400, description="Seconds without progress after which every rank writes down its stacks."
    )
    restarts: int = Field(
        0,
        ge=0,
        le=100,
        description="Times in a row that a run which a node or rank failed is resumed by itself; 0: never.",
    )
