"""PURE: what is wanted of a node's interpreter -> the files that are put there, and what pip's last lines mean.

The virtual environment is named by the hash of all that goes into it, so that the same wish is the same folder:
asked for again it is found whole, or gone on with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .venvfolder import VenvFolder

OLDEST = (3, 11)
NEWEST = (3, 14)  # the newest minor version that the pinned packages have files for
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
ENVIRONMENT, PACKAGES, GPU = "environment", "packages", "GPU packages"


@dataclass(frozen=True)
class Wanted:
    """`python`: absolute path of the interpreter to build on. The others are contents of files as pip reads them;
    `gpu`, what nodes with GPUs have besides, may be empty. `env`: variables for pip, secrets among them.
    """

    python: str
    requirements: str
    constraints: str
    gpu: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """The hash of what goes in; where it is fetched from makes no difference to pinned versions."""
        parts = json.dumps([self.python, self.requirements, self.constraints, self.gpu])
        return hashlib.sha256(parts.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Found:
    """An interpreter of a node. `venv`: it can make virtual environments."""

    path: str
    version: tuple[int, int, int]
    venv: bool

    @property
    def fits(self) -> bool:
        return self.venv and OLDEST <= self.version[:2] <= NEWEST

    @property
    def words(self) -> str:
        return f"{self.path} (Python {'.'.join(map(str, self.version))}{'' if self.venv else ', cannot make one'})"


def choose(found: Sequence[Found], wanted: str = "", like: tuple[int, int] | None = None) -> Found | None:
    """Return the one at the path `wanted`; else of those that fit one of the minor version `like`, else the newest."""
    if wanted:
        return next((each for each in found if each.path == wanted), None)
    fitting = sorted((each for each in found if each.fits), key=lambda each: each.version, reverse=True)
    same = [each for each in fitting if each.version[:2] == like]
    return next(iter(same or fitting), None)


def files(wanted: Wanted, folder: VenvFolder) -> dict[str, str]:
    """Return path -> content of all that the node needs besides the released code; `env` is put apart."""
    steps = [{"name": name, "argv": list(argv)} for name, argv in _steps(wanted, folder)]
    found = {
        str(folder.requirements): wanted.requirements,
        str(folder.constraints): wanted.constraints,
        str(folder.order): json.dumps({"steps": steps}, indent=2) + "\n",
    }
    return found | ({str(folder.gpu_requirements): wanted.gpu} if wanted.gpu else {})


def _steps(wanted: Wanted, folder: VenvFolder) -> list[tuple[str, tuple[str, ...]]]:
    pip = (str(folder.python), *PIP, "--cache-dir", str(folder.cache), "--constraint", str(folder.constraints))
    steps = [
        (ENVIRONMENT, (wanted.python, "-m", "venv", "--clear", str(folder.path))),
        (PACKAGES, (*pip, "--requirement", str(folder.requirements))),
    ]
    if wanted.gpu:  # flash-attn builds against the torch that is there by then
        steps.append((GPU, (*pip, "--no-build-isolation", "--requirement", str(folder.gpu_requirements))))
    return steps


# What is said in a step's last lines, in lower case -> the way out. The first that fits counts.
WAYS_OUT = (
    (ENVIRONMENT, ("ensurepip",), "Install the node's package for it (Debian: python3-venv), or choose another base."),
    ("", ("no space left", "disk quota"), "Free space on the scratch disk, then try again."),
    ("", ("permission denied", "read-only file"), "Let the node's user write to the scratch folder, then try again."),
    (
        "",
        ("name resolution", "name or service not known", "connection", "timed out", "network is unreachable", "proxy"),
        "Let the node reach the package index, or set SHARDBOARD_PIP_INDEX_URL, SHARDBOARD_PIP_WHEELS or a proxy.",
    ),
    (
        "",
        ("no matching distribution", "could not find a version", "conflicting dependencies"),
        "The index or the folder of wheels has no such file for this Python: add it, or choose another base.",
    ),
    (GPU, ("nvcc", "cuda", "ninja"), "Install a CUDA compiler on the node, or make one without the GPU packages."),
)
TRY_AGAIN = "See the last lines, mend that, and try again: what was downloaded is kept."


def way_out(step: str, tail: Sequence[str]) -> str:
    """Return what to do about a step that failed with these last lines."""
    said = "\n".join(tail).lower()
    fitting = (fix for where, words, fix in WAYS_OUT if where in ("", step) and any(word in said for word in words))
    return next(fitting, TRY_AGAIN)
