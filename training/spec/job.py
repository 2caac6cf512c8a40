"""What a job's folder tells the processes in it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .folder import TOKENS, JobFolder
from .parts import FreshPart
from .recipe import Recipe
from .sections.export import FORMATS, NumberFormat


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Job(Part):
    """job.json: what the supervisor runs. Secrets are not here but in the env file."""

    argv: tuple[str, ...] = Field(min_length=1)
    node_rank: int = 0
    sample_seconds: float = Field(1.0, gt=0)
    grace_seconds: float = Field(60.0, ge=0, description="Between TERM and KILL of the group.")
    disk: str = Field(description="Folder whose file system is sampled.")


class TrainJob(Part):
    """recipe.json of an attempt: what every rank reads."""

    recipe: Recipe
    model: str = Field(description="Folder on the node, or a hub id.")
    revision: str = ""
    train: str = Field(description="JSON Lines file on the node.")
    test: str = ""
    tokens: str = Field("", description="Folder for what is tokenised of them; empty: `tokens`, beside train.")
    checkpoints: str = Field(description="Folder for this attempt's checkpoints.")
    resume_from: str = Field(
        "",
        description="Checkpoint folder to go on from, or the folder of several: its newest complete one."
        " Empty: start afresh.",
    )
    fresh: tuple[FreshPart, ...] = Field((), description="Parts of that checkpoint to begin anew, whatever it holds.")
    events: str = Field(description="This node's events.jsonl.")
    nodes: int = Field(ge=1)
    node_rank: int = Field(ge=0)

    @property
    def tokens_folder(self) -> PurePosixPath:
        """Where sets of sequences lie, each under its hash."""
        return PurePosixPath(self.tokens) if self.tokens else PurePosixPath(self.train).parent / TOKENS

    @property
    def folder(self) -> JobFolder:
        """This node's job folder, in which its events lie."""
        return JobFolder(PurePosixPath(self.events).parent)


AdapterChoice = Literal["none", "merged", "adapter"]
__all__ = ["FORMATS", "AdapterChoice", "ExportJob", "Job", "NumberFormat", "PlanJob", "TrainJob", "export_settings"]


class ExportJob(Part):
    """recipe.json of an export."""

    checkpoint: str = Field(description="Folder holding every shard of one complete checkpoint.")
    model: str = Field(description="The base model: config, tokenizer, generation config.")
    revision: str = ""
    trust_remote_code: bool = False
    template: str = Field("", description="Chat template trained with in place of the base's, which goes along.")
    dtype: NumberFormat = Field("base", description="Number format; base: as the base model is stored.")
    adapter: AdapterChoice = Field(
        "none", description="Of a checkpoint that holds an adapter: a model of its own, or the adapter alone."
    )
    max_shard_bytes: int = Field(5_000_000_000, ge=1_000_000)
    passport: str = Field(
        "", description="spec.passport.Passport as JSON; empty: of what training left beside the checkpoint."
    )
    out: str = Field(description="Result folder; appears under this name only when proven.")
    events: str


class PlanJob(Part):
    """What `plan-export -` reads: an export, what other nodes will bring of its checkpoint, and its environment.

    The environment may hold secrets, which is why all of this comes on standard input.
    """

    job: ExportJob
    coming: dict[str, int] = {}
    env: dict[str, str] = Field({}, repr=False)


def export_settings(recipe: Recipe) -> dict[str, Any]:
    """Return the fields of an ExportJob that the recipe alone decides."""
    return {
        "trust_remote_code": recipe.model.trust_remote_code,
        "template": recipe.data.template,
        "dtype": recipe.export.dtype,
        "adapter": recipe.export.adapter if recipe.method.adapts else "none",
        "max_shard_bytes": round(recipe.export.shard_gigabytes * 1e9),
    }
