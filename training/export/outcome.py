"""Why an export ends other than completed."""

from __future__ import annotations

import errno

from ..spec.faults import Reason
from ..spec.lint import Problem, Refused

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Failure(Exception):
    """The export can't be finished; `reason` goes into the last line of its events."""

    def __init__(self, reason: Reason, text: str):
        self.reason = reason
        super().__init__(text)


class Damaged(Refused):
    """A file of the checkpoint isn't what was written."""


class NoRoom(Refused):
    """The file system of the result is too small."""


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
    if isinstance(error, Refused):
        return Reason.CONFIGURATION
    return Reason.STOPPED_UNSAVED if isinstance(error, SystemExit | KeyboardInterrupt) else None


def _no_space(error: BaseException) -> bool:
    # the tokenizers library is Rust and raises a bare Exception with the system's number in its text
    return (isinstance(error, OSError) and error.errno in NO_SPACE) or "(os error 28)" in str(error)
