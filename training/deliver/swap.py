"""Give a finished folder its name, in one step where the system can, also where another has that name."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

RENAME_EXCHANGE = 2
AT_FDCWD = -100
# What file systems and kernels answer that can't exchange two names.
CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def exchange(new: Path, folder: Path, old: Path) -> None:
    """Rename `new` to `folder`; what was there is at `new` or `old` afterwards, and stays where this fails.

    All three lie on one file system. Without RENAME_EXCHANGE there is a moment in which nothing has the name; a kill
    in it leaves `new` whole, so that the next try only renames.
    """
    if not folder.exists():
        new.rename(folder)
        return
    code = _renameat2(new, folder)
    if code in CANNOT:
        _in_two_steps(new, folder, old)
    elif code:
        raise OSError(code, os.strerror(code), str(folder))


def _in_two_steps(new: Path, folder: Path, old: Path) -> None:
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise


def _renameat2(first: Path, second: Path) -> int:
    """Exchange two names; return 0 or the error's number."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return errno.ENOSYS
    if call(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0:
        return 0
    return ctypes.get_errno()
