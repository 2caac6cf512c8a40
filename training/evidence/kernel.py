"""What the kernel says of a job's processes: killed for memory, faulted, stuck; and what the GPU driver says.

Read from /dev/kmsg, else from journalctl; often neither is allowed, and then that is what is told.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

KMSG = Path("/dev/kmsg")
RECORD_BYTES = 8192  # the most that one read gives: Documentation/ABI/testing/dev-kmsg
MOST_LINES = 6
JOURNAL_SECONDS = 5.0
OOM = re.compile(r"Killed process (\d+)")
# Each with the process it speaks of; a GPU's own fault (Xid) concerns whoever is on it.
SPEAKS = (
    OOM,
    re.compile(r"\[(\d+)\]: segfault at"),
    re.compile(r"traps: [^\[]*\[(\d+)\]"),
    re.compile(r"task [^:]*:(\d+) blocked for more than"),
)
XID = re.compile(r"NVRM: Xid ")


@dataclass(frozen=True)
class Kernel:
    """`readable`: whether the log could be read at all. `lines`: those of this job. `oom`: its processes killed so.

    `other_oom`: lines of other processes killed for memory; in a container they may be ours, under other numbers.
    """

    readable: bool = False
    lines: tuple[str, ...] = ()
    oom: tuple[int, ...] = ()
    other_oom: tuple[str, ...] = ()


def unread(_pids: Collection[int], _since: float) -> Kernel:
    """Look nowhere."""
    return Kernel()


def read(pids: Collection[int], since: float, path: Path = KMSG) -> Kernel:
    """Return what was said of `pids` since `since`, seconds of the monotonic clock, which the kernel's stamps count."""
    try:
        messages = [text for at, text in records(path) if at >= since]
    except OSError:
        found = _journal(since)
        if found is None:
            return Kernel()
        messages = found
    return of_job(messages, pids)


def of_job(messages: Iterable[str], pids: Collection[int]) -> Kernel:
    """PURE: pick the messages that speak of `pids`, or of a GPU's fault."""
    lines, oom, other = [], [], []
    for text in messages:
        spoken = {int(found[1]) for speaks in SPEAKS if (found := speaks.search(text))} & set(pids)
        if spoken or XID.search(text):
            lines.append(text[:300])
        if spoken and OOM.search(text):
            oom += sorted(spoken)
        elif OOM.search(text):
            other.append(text[:300])
    return Kernel(True, tuple(lines[-MOST_LINES:]), tuple(oom), tuple(other[-1:]))


def records(path: Path = KMSG) -> Iterable[tuple[float, str]]:
    """Yield (seconds since boot, message) of all that is kept, without waiting for more. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            try:
                record = os.read(file, RECORD_BYTES)
            except BrokenPipeError:  # overwritten while we read: go on with the next
                continue
            except BlockingIOError:
                return
            if not record:
                return
            head, _, text = record.decode("utf-8", "replace").partition(";")
            fields = head.split(",")
            if len(fields) >= 3 and fields[2].isdigit():
                yield int(fields[2]) / 1e6, text.split("\n")[0]
    finally:
        os.close(file)


def _journal(since: float) -> list[str] | None:
    """Return the kernel's messages from the journal; None where there is none for us."""
    try:
        done = subprocess.run(
            ["journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-n", "2000"],
            capture_output=True, timeout=JOURNAL_SECONDS, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [re.match(r"\[\s*(\d+\.\d+)\] (.*)", line) for line in done.stdout.decode("utf-8", "replace").split("\n")]
    found = [(float(line[1]), line[2]) for line in lines if line]
    return [text for at, text in found if at >= since] if found else None
