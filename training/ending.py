"""Why a job ended, found out of what it left: its last event, its exit status, its log.

A rank's own word counts unless it only says that it failed: a rank whose neighbour was killed sees a lost
connection and says so, while the launcher's report names the first that died.
"""

from __future__ import annotations

import re
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from .exitfile import Ending
from .journal import tail
from .spec.events import Kind
from .spec.faults import SENTENCES, Reason
from .spec.folder import JobFolder

LOG_BYTES = 1 << 18
RANK_PREFIX = re.compile(r"^\[(?:rank|default)\d+\]:\s?")
# torch elastic's words on the first rank that ended: in its report, and before it in one line without the global rank.
ROOT_CAUSE = re.compile(
    r"Root Cause .*?^\s*rank\s*: (?P<rank>\d+) .*?^\s*exitcode\s*: (?P<code>-?\d+)", re.DOTALL | re.MULTILINE
)
FIRST_RANK = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+)")
GPU_MEMORY = re.compile(r"CUDA out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED")
DISK = re.compile(r"No space left on device|\[Errno 28\]")
# The launcher's account of a failure that a rank explains better.
LAUNCHER = re.compile(r"ChildFailedError|CalledProcessError|SignalException|ProcessRaisedException")
# What a rank says whose neighbour ended first: true, and not why the job ended.
NEIGHBOUR = re.compile(
    r"Connection closed by peer|Connection reset by peer|ncclRemoteError|remote process exited"
    r"|Broken pipe|Socket Timeout|caused by a remote worker"
)
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


@dataclass(frozen=True)
class Outcome:
    """How the job's own process ended. `ended_by_us`: it lived when it was told to end at once."""

    code: int | None
    signal: int | None
    ended_by_us: bool = False
    memory: str = ""  # a sentence about the most memory seen


def find(folder: JobFolder, outcome: Outcome) -> Ending:
    """Return the job's ending."""
    reason, text = finished(folder)
    if reason == Reason.STOPPED and not _asked(folder, outcome):
        reason, text = None, ""
    if reason in (None, Reason.RANK_FAILED) or (reason == Reason.PEER_ENDED and not outcome.ended_by_us):
        reason, text = _evidence(folder, outcome, text)
    assert reason is not None
    return Ending(reason, text, outcome.code, outcome.signal)


def _asked(folder: JobFolder, outcome: Outcome) -> bool:
    """Ranks whose launcher dies are told to end as in a stop, and save; that is not why the job ended."""
    return outcome.code == 0 or outcome.ended_by_us or Path(folder.stop).exists()


def finished(folder: JobFolder) -> tuple[Reason | None, str]:
    """Return what the last `finished` event of this start says; (None, "") where there is none."""
    try:
        told = [event for event in tail(Path(folder.events)) if event.kind in (Kind.FINISHED, Kind.START)]
        events = [event for event in told[-1:] if event.kind == Kind.FINISHED]
        last = events[-1].data if events else {}
        return (Reason(last["reason"]), str(last.get("text", ""))) if last else (None, "")
    except (FileNotFoundError, KeyError, ValueError):
        return None, ""


def _evidence(folder: JobFolder, outcome: Outcome, said: str) -> tuple[Reason, str]:
    if outcome.ended_by_us:
        return Reason.STOPPED_UNSAVED, ""
    if outcome.code == 0:
        return (Reason.STOPPED if Path(folder.stop).exists() else Reason.COMPLETED), ""
    log = read_log(folder)
    if killed := _killed(outcome, log):
        told = f"{SENTENCES[Reason.KILLED_BY_HOST]}: {killed} on {socket.gethostname()}"
        return Reason.KILLED_BY_HOST, f"{told}; {outcome.memory}".removesuffix("; ")
    text = _best([said, *failures(log)]) or _status(outcome, log)
    if GPU_MEMORY.search(log):
        return Reason.OUT_OF_GPU_MEMORY, text
    if DISK.search(log):
        return Reason.DISK_FULL, text
    return (Reason.PEER_ENDED if NEIGHBOUR.search(text) else Reason.RANK_FAILED), text


def _killed(outcome: Outcome, log: str) -> str:
    """Return who was killed by signal 9, "" where nobody was."""
    who, code = _first_rank(log)
    if code == -signal.SIGKILL:
        return f"{who} was killed by signal 9"
    if outcome.signal == signal.SIGKILL:
        return "the launcher was killed by signal 9"
    # a shell between us and the process reports 128 + 9
    return "a process was killed by signal 9" if outcome.code == 128 + signal.SIGKILL else ""


def _first_rank(log: str) -> tuple[str, int]:
    """Return which rank the launcher saw end first and its exit code; ("", 0) where it says nothing of it."""
    if report := ROOT_CAUSE.search(log):
        return f"rank {report['rank']}", int(report["code"])
    if line := FIRST_RANK.search(log):
        return f"local rank {line['rank']}", int(line["code"])
    return "", 0


def _status(outcome: Outcome, log: str) -> str:
    who, code = _first_rank(log)
    if not who:
        who, code = "the process", -outcome.signal if outcome.signal else outcome.code or 0
    how = f"was ended by signal {-code} ({_signal_name(-code)})" if code < 0 else f"ended with status {code}"
    last = next((line.strip() for line in reversed(log.split("\n")) if line.strip()), "")
    return f"{who} {how}; its last words: {last[:300]}" if last else f"{who} {how}"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else "unknown"


def read_log(folder: JobFolder) -> str:
    """Return the end of train.log, ranks' prefixes taken off."""
    try:
        with Path(folder.log).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(RANK_PREFIX.sub("", line) for line in text.split("\n"))


def _best(lines: list[str]) -> str:
    """Return the first line that tells of a rank's own failure, else of a neighbour's, else ""."""
    told = [line for line in lines if line]
    return next((line for line in told if not NEIGHBOUR.search(line)), told[0] if told else "")


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
