"""What is said when one node takes files of another directly. Sizes in bytes, hashes SHA-256 in hex.

The taker makes a key for this one transfer, the holder lends the files to that key alone, the taker takes them:
`python -m training fetch-key`, `lend`, `fetch`, each told by one of these on its standard input.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .faults import Reason


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or "\n" in name:
        raise ValueError("name a file inside the folder")
    return name


Name = Annotated[str, AfterValidator(_inside)]


class Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Wanted(Said):
    """One file, by its name relative to the folder."""

    name: Name
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Loan(Said):
    """What `lend` is told. `place`: a folder for keys, made and removed by it. `key`: who may take the files."""

    place: str
    folder: str
    names: tuple[Name, ...]
    address: str
    key: str = Field(pattern=r"^ssh-ed25519 [A-Za-z0-9+/=]+$")
    idle_seconds: float = Field(60.0, gt=0, description="It ends when nobody has been connected for so long.")


class Lent(Said):
    """What `lend` answers: where the private SSH server listens, and its key."""

    port: int
    user: str
    host_key: str


class Taking(Said):
    """What `fetch` is told."""

    place: str
    address: str
    lent: Lent
    source: str
    folder: str
    files: tuple[Wanted, ...]


class Taken(Said):
    """What `fetch` answers, when it is over. Without a `reason` all files are there, whole, each with its hash.

    `bytes`: that came over the link; what an earlier try had brought is not among them.
    """

    reason: Reason | None = None
    text: str = ""
    bytes: int = 0
