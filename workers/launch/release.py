"""The training code as it is put on nodes: named by its content, put once per version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import training
from training.spec.folder import Scratch
from webapp.fleet.ssh import Host

ROOT = Path(training.__file__).parent
LEFT_OUT = {"__pycache__"}
FOLLOWER = ("training/__init__.py", "training/__main__.py", "training/follow.py")


@dataclass(frozen=True)
class Release:
    """`files`: name relative to the release's folder -> content. `digest` names the folder."""

    digest: str
    files: dict[str, bytes]


@cache
def current() -> Release:
    """Return the code this process was started with; read once, so that an update under our feet stays out."""
    names = (path for path in sorted(ROOT.rglob("*")) if path.is_file() and not LEFT_OUT & set(path.parts))
    return _of({path.relative_to(ROOT.parent).as_posix(): path.read_bytes() for path in names if path.suffix != ".pyc"})


@cache
def follower() -> Release:
    """Return the little of it that `python -m training follow` is made of: there at once, also on a disk nearly full,
    and seldom another one.
    """
    return _of({name: current().files[name] for name in FOLLOWER})


async def put(host: Host, scratch: str, code: Release | None = None) -> None:
    """Put the code into a node's scratch folder, unless it is there: that of this process, or `code`."""
    code = code or current()
    await host.put_tree(str(Scratch(PurePosixPath(scratch)).release(code.digest)), code.files)


def _of(files: dict[str, bytes]) -> Release:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return Release(digest.hexdigest()[:32], files)
