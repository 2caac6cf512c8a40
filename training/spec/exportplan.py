"""What an export will be, told before it begins: the last line of `python -m training plan-export`. Bytes and seconds.

The service stores it beside the export, and holds what happened against it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from .faults import Reason


class Told(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Finding(Told):
    """Why it can't work (`reason`: how the export would end), or what to know beforehand."""

    field: str = Field(max_length=300)
    why: str = Field(max_length=2000)
    fix: str = Field(max_length=1000)
    reason: Reason = Reason.CONFIGURATION

    def __str__(self) -> str:
        return f"{self.field}: {self.why}. {self.fix}"


class PlannedFile(Told):
    name: str = Field(max_length=200)
    size: int = Field(ge=0)


class Reading(Told):
    """What is read: the checkpoint's files that an export needs, those of an adapter's base beside them."""

    checkpoint: str = ""
    step: int = Field(0, ge=0)
    files: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    brought: int = Field(0, ge=0, description="Bytes of these that have to come from other nodes first.")
    base: int = Field(0, ge=0, description="Bytes of the base that an adapter is merged into.")


class Writing(Told):
    """What is written, where. `sizes`: bytes of the weights in each number format; `asked` may be `base`."""

    folder: str = ""
    asked: str = ""
    dtype: str = ""
    tensors: int = Field(0, ge=0)
    bytes: int = Field(0, ge=0)
    done: int = Field(0, ge=0, description="Bytes that an earlier try has left to go on from.")
    files: tuple[PlannedFile, ...] = ()
    sizes: dict[str, int] = {}


class Memory(Told):
    """Peak of the process that streams and of the one that proves; `whole`: the proof loads the model at once."""

    stream: int = Field(0, ge=0)
    prove: int = Field(0, ge=0)
    available: int = Field(0, ge=0)
    whole: bool = True


class Disk(Told):
    """The file system of the result. `needed` counts what is brought from other nodes where that lands there too."""

    free: int = Field(0, ge=0)
    needed: int = Field(0, ge=0)

    @property
    def after(self) -> int:
        return self.free - self.needed


class Rates(Told):
    """Bytes a second, hashing included, of a small probe at the place; 0: not measured."""

    read: float = Field(0.0, ge=0)
    write: float = Field(0.0, ge=0)
    probed: int = Field(0, ge=0, description="Bytes of the probe, each way.")


class Seconds(Told):
    """An estimate of each phase; 0 where nothing was measured. Bringing shards is not in it."""

    start: float = Field(0.0, ge=0)
    check: float = Field(0.0, ge=0)
    stream: float = Field(0.0, ge=0)
    prove: float = Field(0.0, ge=0)

    @property
    def total(self) -> float:
        return self.start + self.check + self.stream + self.prove


class ExportPlan(Told):
    """The whole of it. It works where there are no `problems`; `notes` keep nothing from working."""

    problems: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    reading: Reading = Reading()
    writing: Writing = Writing()
    memory: Memory = Memory()
    disk: Disk = Disk()
    rates: Rates = Rates()
    seconds: Seconds = Seconds()

    @property
    def works(self) -> bool:
        return not self.problems
