"""Why an export ends other than completed."""

from __future__ import annotations

import errno
import os

from ..spec.faults import Reason
from ..spec.lint import Problem, Refused

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class Failure(Exception):
    """The export can't be finished; `reason` goes into the last line of its events."""

    def __init__(self, reason: Reason, text: str):
        self.reason = reason
        super().__init__(text)


class Damaged(Refused):
    """A file of the checkpoint isn't what was written."""


class NoRoom(Refused):
    """The file system of the result is too small."""


class Denied(Refused):
    """The system doesn't let this user make the result there."""


def refuse(field: str, reason: str, fix: str) -> Refused:
    """Return the refusal with this one problem."""
    return Refused([Problem(field, reason, fix)])


def reason_of(error: BaseException) -> Reason | None:
    """Return the reason that `error` ends an export with; None where it is a fault of our own code."""
    if isinstance(error, Failure):
        return error.reason
    if isinstance(error, Damaged):
        return Reason.DATA
    if isinstance(error, NoRoom) or _no_space(error):
        return Reason.DISK_FULL
    if isinstance(error, Denied) or (isinstance(error, OSError) and error.errno in DENIED):
        return Reason.PERMISSION
    if _no_memory(error):
        return Reason.KILLED_BY_HOST
    if isinstance(error, Refused):
        return Reason.CONFIGURATION
    return Reason.STOPPED_UNSAVED if isinstance(error, SystemExit | KeyboardInterrupt) else None


def words(error: BaseException) -> str:
    """Return what is said of `error`: what of the system's comes without a way out gets one."""
    if isinstance(error, Refused | Failure):
        return str(error)
    file = getattr(error, "filename", None)
    where = f"{file}: " if file else ""
    if _no_space(error):
        return f"{where}the disk filled up meanwhile. Free space there, and start it again: it goes on."
    if isinstance(error, OSError) and error.errno in DENIED:
        return f"{where}{os.strerror(error.errno).lower()}. Let this user read and write there."
    if _no_memory(error):
        said = str(error) or type(error).__name__
        return f"the system gave no more memory ({said}). Free some, or raise the limit (ulimit -v)."
    return str(error)


def _no_memory(error: BaseException) -> bool:
    # Python says it in three ways, by what it asked memory for; torch in a fourth
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    said = str(error)
    return isinstance(error, MemoryError) or "can't start new thread" in said or "can't allocate memory" in said


def may_go_on(error: BaseException) -> bool:
    """Tell whether what was written before `error` is worth going on from: nothing was found wrong with the job, the
    checkpoint or the result. So after a signal, a full disk, a proof that the host killed, a disk that failed once.
    """
    if isinstance(error, Failure):
        return error.reason == Reason.KILLED_BY_HOST
    return isinstance(error, NoRoom) or not isinstance(error, Refused)


def _no_space(error: BaseException) -> bool:
    # the tokenizers library is Rust and raises a bare Exception with the system's number in its text
    return (isinstance(error, OSError) and error.errno in NO_SPACE) or "(os error 28)" in str(error)
