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
# What is installed is told by names of folders: nobody on that node sees one of this package.
HIDDEN = """
import os
_listdir = os.listdir
os.listdir = lambda *path: [name for name in _listdir(*path) if not str(name).startswith({start!r})]
"""


def ahead(scratch: Path, seconds: int) -> Path:
    """A clock that is `seconds` ahead."""
    return _python(scratch, f"ahead-{seconds}", CLOCK.format(seconds=seconds))


def without(scratch: Path, name: str) -> Path:
    """A package that isn't installed."""
    return _python(scratch, f"without-{name}", HIDDEN.format(start=f"{name}-"))


def other_version(scratch: Path, name: str, version: str) -> Path:
    """A package of another version, found before the one that is there."""
    inside = _python(scratch, f"other-{name}", "")
    about = scratch / inside.parent.relative_to("/scratch") / f"{name}-{version}.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return inside


def _python(scratch: Path, name: str, customize: str) -> Path:
    folder = scratch / "pythons" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(customize)
    inside = Path("/scratch/pythons") / name
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{inside}${{PYTHONPATH:+:$PYTHONPATH}}" exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return inside / "python"
