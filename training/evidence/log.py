"""PURE but for one read: what the end of train.log tells of a failure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..spec.faults import Reason
from ..spec.folder import JobFolder

LOG_BYTES = 1 << 18
LINES_BEFORE, LINES_AFTER, LINE_LENGTH = 20, 4, 400
RANK_PREFIX = re.compile(r"^\[(?:rank|default)\d+\]:\s?")
# torch elastic's words on the first rank that ended: in its report, and before it in one line without the global rank.
ROOT_CAUSE = re.compile(
    r"Root Cause .*?^\s*rank\s*: (?P<rank>\d+) .*?^\s*exitcode\s*: (?P<code>-?\d+)(?: \(pid: (?P<pid>\d+)\))?",
    re.DOTALL | re.MULTILINE,
)
FIRST_RANK = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+)(?: \(pid: (?P<pid>\d+)\))?")
# What a rank says whose neighbour ended first: true, and not why the job ended.
NEIGHBOUR = re.compile(
    r"Connection closed by peer|Connection reset by peer|ncclRemoteError|remote process exited"
    r"|Broken pipe|Socket Timeout|caused by a remote worker"
)
# What gloo, NCCL's watchdog and the rendezvous' store say when a rank does not come in time.
TIMED_OUT = re.compile(
    r"Timed out waiting \d+ms for (?:recv|send) operation|[Cc]ollective operation timeout"
    r"|failed to pass monitoredBarrier|Timed out after \d+ seconds waiting for clients|ncclTimeout"
)
ASSERTION = re.compile(r"^(?:[\w.]+\.)?AssertionError\b|device-side assert triggered")
GPU_MEMORY = re.compile(r"CUDA out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED")
DISK = re.compile(r"No space left on device|\[Errno 28\]|\[Errno 122\]")
# The launcher's account of a failure that a rank explains better.
LAUNCHER = re.compile(r"ChildFailedError|CalledProcessError|SignalException|ProcessRaisedException")
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


class First(NamedTuple):
    """Which rank the launcher saw end first: in words ("" where it says nothing), its exit code, its process."""

    who: str
    code: int
    rank: int | None = None
    pid: int | None = None


def read(folder: JobFolder) -> str:
    """Return the end of train.log; "" where there is none."""
    try:
        with Path(folder.log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_BYTES))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def plain(log: str) -> str:
    """Return `log` with the ranks' prefixes taken off."""
    return "\n".join(RANK_PREFIX.sub("", line) for line in log.split("\n"))


def first_rank(log: str) -> First:
    """Return which rank the launcher saw end first."""
    if report := ROOT_CAUSE.search(log):
        return First(f"rank {report['rank']}", int(report["code"]), int(report["rank"]), _number(report["pid"]))
    if line := FIRST_RANK.search(log):
        return First(f"local rank {line['rank']}", int(line["code"]), None, _number(line["pid"]))
    return First("", 0)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def failures(log: str) -> list[str]:
    """Return the last line of every traceback that is not the launcher's own, in the log's order."""
    lines = log.split("\n")
    found = []
    for start in (n for n, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")):
        last = next((n for n in range(start + 1, len(lines)) if lines[n][:1].strip()), None)
        # an exception that another one followed up is told by that one
        if last is not None and not any(line.startswith(CHAINED) for line in lines[last + 1 : last + 4]):
            found.append(lines[last].strip())
    return [line for line in found if not LAUNCHER.search(line)]


def best(lines: list[str]) -> str:
    """Return the first line that tells of a rank's own failure, else of a neighbour's, else ""."""
    told = [line for line in lines if line]
    return next(
        (line for line in told if not (NEIGHBOUR.search(line) or TIMED_OUT.search(line))), told[0] if told else ""
    )


def watchdog(log: str) -> str:
    """Return the first line that tells of a collective that timed out; NCCL's watchdog leaves no traceback."""
    return next((line.strip() for line in log.split("\n") if TIMED_OUT.search(line)), "")


def reason(text: str, log: str) -> Reason:
    """Return what `text`, the line that tells most, and the log it comes from mean."""
    if GPU_MEMORY.search(log):
        return Reason.OUT_OF_GPU_MEMORY
    if DISK.search(log):
        return Reason.DISK_FULL
    if ASSERTION.search(text):
        return Reason.ASSERTION
    if TIMED_OUT.search(text):
        return Reason.COLLECTIVE_TIMEOUT
    return Reason.PEER_ENDED if NEIGHBOUR.search(text) else Reason.RANK_FAILED


def telling(log: str, text: str) -> list[str]:
    """Return the lines of `log` that show `text`: those around it where it stands there, else the job's last ones."""
    lines = _lines(log)
    at = next((n for n, line in enumerate(lines) if text and text[:200] in line), None)
    if at is None:
        return (before_report(log) or lines)[-LINES_BEFORE:]
    return lines[max(0, at - LINES_BEFORE) : at + LINES_AFTER]


def before_report(log: str) -> list[str]:
    """Return the lines before the launcher's account of how a rank ended; all where it gave none."""
    report = FIRST_RANK.search(log)
    return _lines(log[: log.rfind("\n", 0, report.start()) + 1] if report else log)


def _lines(log: str) -> list[str]:
    return [line.rstrip()[:LINE_LENGTH] for line in log.split("\n") if line.strip()]
