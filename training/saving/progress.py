"""How far training has come, in units that don't depend on the number of ranks: progress.json of a checkpoint."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ..spec.sections.optimisation import Optimisation

NAME = "progress.json"
MOVES = (
    "optimizer", "learning_rate", "schedule", "warmup_ratio", "warmup_steps", "max_steps", "epochs", "weight_decay",
    "betas", "epsilon",
)  # fmt: skip


class Origin(BaseModel):
    """What is trained on what, and how. Empty: not known, as in a checkpoint of an earlier version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str = Field("", description="Name of the tokens' artefact.")
    model: str = Field("", description="Which base model, see loading.identity.")
    optimisation: str = Field("", description="The optimizer's and the schedule's settings, see moved_by.")


def moved_by(how: Optimisation) -> str:
    """Return in words what decides how weights move at a step."""
    told = how.model_dump(mode="json", include=set(MOVES))
    return ", ".join(f"{name} {told[name]}" for name in MOVES)


class Progress(BaseModel):
    """Data position and token count at a step. A row is one of the data set as the ranks read it, packed or not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: int = Field(ge=0)
    epoch: int = Field(ge=0, description="Passes over the data that are done.")
    rows: int = Field(ge=0, description="Rows of this pass that are done, in the order that `seed` and `epoch` give.")
    rows_in_all: int = Field(ge=1, description="Rows of the data set.")
    seed: int = Field(description="Seed of the data's order.")
    tokens: int = Field(ge=0, description="Tokens trained on so far, over all ranks.")
    rows_per_step: int = Field(0, ge=0, description="Rows of one optimizer step, over all ranks; 0: not known.")
    origin: Origin = Origin()


def read(folder: Path) -> Progress:
    """Read the checkpoint's progress; raise OSError or ValueError where there is none that can be read."""
    return Progress.model_validate_json((folder / NAME).read_bytes())


class Window(BaseModel):
    """window_<rank>.json: what one rank has added up since the last metrics line; empty where one came with the save.

    With it the first line after a resume is the unbroken run's, though the save was made between two lines.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")

    loss: float = Field(description="Sum of this rank's losses.")
    since: int = Field(ge=0, description="Step of the last line.")
    metrics: dict[str, list[float]] = Field(description="TRL's own figures, one a forward pass.")


def window_name(rank: int) -> str:
    return f"window_{int(rank)}.json"


def read_window(folder: Path, rank: int) -> Window:
    return Window.model_validate_json((folder / window_name(rank)).read_bytes())
