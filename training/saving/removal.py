"""How a checkpoint goes, and what keeps it: pins and holds, looked for again when nobody can reach it any more.

Training rotates while the service deletes what a person chose: whoever renames the folder has it, the other finds
nothing. Needs no torch.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

from ..spec.folder import PIN, held_by

DELETED = ".deleted-"
TAKEN = re.compile(rf"{re.escape(DELETED)}(.+)-[0-9a-f]{{8}}")


def pinned(folder: Path) -> bool:
    return (folder / PIN).exists()


def holds(folder: Path) -> list[int]:
    """Return the exports that hold the checkpoint in `folder`, in order of number."""
    return sorted(number for name in names(folder) if (number := held_by(name)) is not None)


def names(folder: Path) -> list[str]:
    """Return what is in the folder; nothing where it has gone, also meanwhile, which a glob doesn't bear."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def pin(folder: Path) -> None:
    """Keep the checkpoint from being deleted; raise OSError where there is none."""
    os.close(os.open(folder / PIN, os.O_WRONLY | os.O_CREAT, 0o644))


def unpin(folder: Path) -> None:
    (folder / PIN).unlink(missing_ok=True)


def size(folder: Path) -> int:
    """Return the bytes of all files under `folder`; one that vanishes meanwhile counts nothing."""
    found = 0
    for directory, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                found += os.lstat(os.path.join(directory, name)).st_size
    return found


def delete(folder: Path, *, whatever_keeps_it: bool = False) -> int:
    """Delete a checkpoint; from its first moment it no longer counts as one. Return the bytes that were freed.

    What an earlier call left half deleted goes as well. One that was pinned or held until the last moment stays: it
    gets its name back, be it from a call beside this one or from the next after one that was killed. A link stays.
    """
    if folder.is_symlink():  # what it points to is a person's own affair; only where a new one comes its name is needed
        if whatever_keeps_it:
            folder.unlink(missing_ok=True)
        return 0
    doomed = folder.with_name(f"{DELETED}{folder.name}-{uuid.uuid4().hex[:8]}")
    with suppress(FileNotFoundError):  # another one has it
        os.replace(folder, doomed)
    if whatever_keeps_it:
        _let_go(doomed)
    give_back(folder.parent)
    freed = 0
    for rest in (folder.with_name(f"{DELETED}{folder.name}"), *folder.parent.glob(f"{DELETED}{folder.name}-*")):
        if rest.is_symlink():
            rest.unlink(missing_ok=True)
        elif not (pinned(rest) or holds(rest)):
            freed += size(rest)
            shutil.rmtree(rest, onerror=_unless_gone)
    return freed


def give_back(root: Path) -> None:
    """Let what is pinned or held in the folder of checkpoints, and was about to be deleted, have its name again."""
    for rest in root.glob(f"{DELETED}*"):
        if (name := TAKEN.fullmatch(rest.name)) and (pinned(rest) or holds(rest)):
            try:
                os.replace(rest, root / name[1])
            except FileNotFoundError:  # another one gave it back
                continue
            except OSError as error:  # a newer one has the name: both stay
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise


def _let_go(folder: Path) -> None:
    """Take away what keeps it, so that a rest of it is not given back as if it were whole."""
    for name in names(folder):
        if name == PIN or held_by(name) is not None:
            (folder / name).unlink(missing_ok=True)


def _unless_gone(function: object, path: object, error: tuple[type, BaseException, object]) -> None:
    """Another process may be removing the same tree."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]
