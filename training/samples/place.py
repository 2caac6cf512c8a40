"""Make a folder whole or not at all: build beside it, then rename."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def make(folder: Path, build: Callable[[Path], None], *, complete: tuple[str, ...]) -> bool:
    """Let `build` fill a temporary folder and rename it to `folder`; return False where it is there already.

    `complete`: file names that a finished folder has. Raises FileExistsError where `folder` holds something else.
    """
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        if all((folder / name).is_file() for name in complete):
            return False
        raise FileExistsError(f"{folder} exists and is not such a sample; name another folder or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(work)
        _open_to_readers(work)
        # replace() takes the place of an empty folder, and fails where someone else finished first
        work.replace(folder)
    except OSError:
        if all((folder / name).is_file() for name in complete):
            return False
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return True


def _open_to_readers(folder: Path) -> None:
    """Give the modes a plain `mkdir` and `open` would: libraries write weights with mode 600, mkdtemp makes 700."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
