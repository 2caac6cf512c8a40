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
    hang_end_seconds: int = Field(
        600,
        ge=0,
        le=86400,
        description="Seconds after that in which it may still go on; then the run ends as hung. Not before the first"
        " step; 0: never.",
    )
    lost_seconds: int = Field(
        900,
        ge=30,
        le=86400,
        description="Seconds that a node may be silent and unreachable, and no step be told of, before it counts as"
        " lost and the others are ended. Six times as many where none of the run's nodes can be reached.",
    )
    restarts: int = Field(
        0,
        ge=0,
        le=100,
        description="Times in a row that a run which a node or rank failed is resumed by itself; 0: never.",
    )
    spare: bool = Field(
        False,
        description="Such a restart leaves out the nodes that failed first in the tries before, where others that are"
        " free can take their place. Without shared storage the shards on a lost node are lost to it.",
    )
