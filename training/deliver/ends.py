"""Why a delivery ends other than completed, in words that hold no secret."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..spec.deliver import SECRETS
from ..spec.faults import Reason
from ..spec.lint import Problem, Refused

HIDDEN = "(hidden)"
LENGTH = 600  # of a foreign service's own words
SHORTEST = 4  # a shorter value hides nothing, and its letters are everywhere
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
TOKENS = re.compile(
    r"\bhf_[A-Za-z0-9]{8,}|(?<=[?&])X-Amz-[A-Za-z-]+=[^&\s'\"]+|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{8,})"
)


class Failed(Exception):
    """The delivery can't be finished. `reason` goes into the last line of its events, `problem` into its text."""

    def __init__(self, reason: Reason, problem: Problem):
        self.reason, self.problem = reason, problem
        super().__init__(str(problem))


def failed(reason: Reason, field: str, why: str, fix: str) -> Failed:
    return Failed(reason, Problem(field, why, fix))


def refuse(field: str, why: str, fix: str) -> Refused:
    """Return the refusal with this one problem."""
    return Refused([Problem(field, why, fix)])


def scrub(text: str, env: Mapping[str, str] = os.environ) -> str:
    """Return `text` without the values of the environment's secrets, and without what looks like one."""
    names = {name for needed, also in SECRETS.values() for name in (*needed, *also)}
    for value in sorted((env.get(name, "") for name in names), key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return TOKENS.sub(HIDDEN, text)


def words(error: BaseException) -> str:
    """Return what a foreign service said, on one line, without secrets, not longer than a page shows."""
    text = " ".join(scrub(str(error)).split()) or type(error).__name__
    return text if len(text) <= LENGTH else text[: LENGTH - 3] + "..."


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what it came from."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def told(error: BaseException) -> tuple[Reason, str] | None:
    """Return reason and text that `error` ends a delivery with; None where it is a fault of our own code."""
    if isinstance(error, Failed):
        return error.reason, scrub(str(error))
    if isinstance(error, Refused):
        return Reason.CONFIGURATION, scrub(str(error))
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return Reason.STOPPED_UNSAVED, str(error)
    return _of_system(error) if isinstance(error, OSError) else None


def _of_system(error: OSError) -> tuple[Reason, str]:
    """Files alone come here: what a network says is turned into Failed where it is heard."""
    where = str(error.filename or "the file system")
    if error.errno in NO_SPACE:
        found = failed(Reason.DISK_FULL, where, "the disk is full", "Free space there; what is whole stays for resume.")
    elif error.errno in DENIED:
        why = os.strerror(error.errno or 0).lower()
        found = failed(Reason.PERMISSION, where, why, "Let the user that runs this read and write there.")
    elif error.errno == errno.EIO:
        found = failed(Reason.DATA, where, "the disk could not be read or written", "Look at the disk's health.")
    elif isinstance(error, FileNotFoundError):
        found = failed(Reason.DATA, where, "vanished meanwhile", "See what deletes it, and deliver again.")
    else:
        why = (error.strerror or str(error) or type(error).__name__).lower()
        found = failed(Reason.DESTINATION, where, why, "See what is there, and deliver again.")
    return found.reason, scrub(str(replace(found.problem)))
