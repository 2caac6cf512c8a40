"""Interpreters of a node that are not as they should be: a script on its disk that starts the real one, changed by a
`sitecustomize` of its own. Each returns the path as the node sees it.
"""

from __future__ import annotations

import sys
from pathlib import Path

# time.time and its like, for all of Python on that node; monotonic clocks are not touched, as by a clock that is wrong.
CLOCK = """
import time
_time, _ns = time.time, time.time_ns
time.time = lambda: _time() + {seconds}
time.time_ns = lambda: _ns() + {seconds} * 10**9
"""
METADATA = """
from importlib import metadata
_version = metadata.version
def version(name):
    if name == {name!r}:
        {what}
    return _version(name)
metadata.version = version
"""


def ahead(scratch: Path, seconds: int) -> Path:
    """A clock that is `seconds` ahead."""
    return _python(scratch, f"ahead-{seconds}", CLOCK.format(seconds=seconds))


def without(scratch: Path, name: str) -> Path:
    """A package that isn't installed."""
    return _python(
        scratch, f"without-{name}", METADATA.format(name=name, what="raise metadata.PackageNotFoundError(name)")
    )


def other_version(scratch: Path, name: str, version: str) -> Path:
    """A package of another version."""
    return _python(scratch, f"{name}-{version}", METADATA.format(name=name, what=f"return {version!r}"))


def _python(scratch: Path, name: str, customize: str) -> Path:
    folder = scratch / "pythons" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(customize)
    inside = Path("/scratch/pythons") / name
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{inside}${{PYTHONPATH:+:$PYTHONPATH}}" exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return inside / "python"
