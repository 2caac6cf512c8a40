"""What made an export's weights: passport.json in its folder.

The service composes it of its rows; an export by hand of the files that training left beside the checkpoint. It goes
no further than the checkpoint: what the run did afterwards did not make these weights. The same job has the same
passport whenever it is written. It names people by their user name and secrets by the names of their variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

NAME = "passport.json"
GPU = ("name", "memory_total", "driver")


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunFacts(Part):
    id: int | None = None
    name: str = ""
    preset: str = ""
    owner: str = Field("", description="User name of whose run it is.")


class ModelFacts(Part):
    """The base model. `location`: folder on the nodes, or hub id; `identity`: hashes that tell it from others."""

    name: str = ""
    location: str
    revision: str = ""
    identity: dict[str, Any] = Field(default_factory=dict)


class DataFacts(Part):
    """What was trained on. `trained`: the `data` event: rows kept, dropped and cut, tokens, file, artefact."""

    name: str = ""
    version: int | None = None
    sha256: str = Field(
        "", description="Of the content, as the service names the set; by hand: of the file at training."
    )
    format: str = ""
    rows: int | None = None
    test_rows: int | None = None
    bytes: int | None = None
    trained: dict[str, Any] = Field(default_factory=dict)


class NodeFacts(Part):
    """One node of one attempt. `hardware`: host name, cores, ram_total, gpus; `versions`: python, packages, cuda."""

    rank: int
    name: str = ""
    processes: int | None = None
    commands: tuple[tuple[str, ...], ...] = Field((), description="Argument lists, run one after the other.")
    variables: tuple[str, ...] = Field((), description="Names of what the ranks' environment was given; no values.")
    hardware: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _one_was_two(cls, found: Any) -> Any:
        """Read what was written down before, with both commands as one list."""
        if isinstance(found, dict) and "command" in found:
            found = {**found, "commands": commands(found["command"])}
            del found["command"]
        return found


class AttemptFacts(Part):
    """One launch. `facts`: the `started` event; `restored`: of the `resumed` event, part -> fate.

    Times are seconds since the epoch; `last_step`, `ended_at` and `reason` are those of its end where it came before
    the checkpoint, else the checkpoint's own.
    """

    number: int
    restart: int = Field(0, description="Which restart in a row by the service itself; 0: a person asked for it.")
    release: str = Field("", description="Hash of the training code.")
    resumed_from: str = ""
    restored: dict[str, Any] = Field(default_factory=dict)
    first_step: int | None = None
    last_step: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    reason: str = ""
    facts: dict[str, Any] = Field(default_factory=dict)
    nodes: tuple[NodeFacts, ...] = ()


class Loss(Part):
    step: int
    loss: float | str


class Losses(Part):
    """Of the logged steps up to the checkpoint, `last` being the one at or before it; evaluations likewise."""

    first: Loss | None = None
    last: Loss | None = None
    lowest: Loss | None = None
    last_evaluation: Loss | None = None
    best_evaluation: Loss | None = None


class Cost(Part):
    """`tokens` that all ranks trained on up to the checkpoint; None where nobody counted. `seconds`: training."""

    tokens: int | None = None
    seconds: float | None = None


class CheckpointFacts(Part):
    name: str
    step: int
    nodes: int
    world_size: int


class ExportFacts(Part):
    """How the weights were written, and by what."""

    dtype: str
    adapter: str
    max_shard_bytes: int
    asked_by: str = Field("", description="User name; empty by hand.")
    hardware: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, Any] = Field(default_factory=dict)


class Passport(Part):
    format: Literal[1] = 1
    composed_of: Literal["rows", "files"] = Field(description="Of the service's rows, or of files on the node alone.")
    run: RunFacts = RunFacts()
    recipe: dict[str, Any] = Field(default_factory=dict)
    model: ModelFacts
    dataset: DataFacts = DataFacts()
    attempts: tuple[AttemptFacts, ...] = Field((), description="Those that led to the checkpoint, in order.")
    losses: Losses = Losses()
    cost: Cost = Cost()
    checkpoint: CheckpointFacts
    asked_by: str = Field("", description="User name of who asked for the export.")
    export: ExportFacts | None = Field(None, description="Added on the node that wrote the folder.")


def commands(argv: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a job's argument list: `tokenise RECIPE` becomes what stands behind it."""
    end = next((at + 2 for at, word in enumerate(argv[:4]) if word == "tokenise"), len(argv))
    return tuple(part for part in (tuple(argv[:end]), tuple(argv[end:])) if part)


def hardware(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a preflight's answer what the machine is; how busy it is, is left out."""
    gpus = [{name: gpu[name] for name in GPU if name in gpu} for gpu in check.get("gpus") or []]
    return {name: check[name] for name in ("hostname", "cores", "ram_total") if name in check} | {"gpus": gpus}


def versions(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a preflight's answer the versions of what is there."""
    found = {"python": check.get("python"), **(check.get("versions") or {})}
    found |= {name: check.get(name) for name in ("cuda", "nccl")}
    drivers = {str(gpu["driver"]) for gpu in check.get("gpus") or [] if gpu.get("driver")}
    found |= {"driver": ", ".join(sorted(drivers))}
    return {name: value for name, value in found.items() if value}
