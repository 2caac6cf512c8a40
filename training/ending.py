"""Why a job ended, found out of what it left: its last event, its exit status, its log, what was seen of it.

A rank's own word counts unless it only says that it failed: a rank whose neighbour was killed sees a lost
connection and says so, while the launcher's report names the first that died.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from .evidence import hang, kernel, log
from .evidence.collect import collect
from .evidence.kernel import Kernel
from .evidence.killed import killed, killed_text
from .evidence.scene import Seen
from .exitfile import Ending
from .journal import tail
from .spec.events import Kind
from .spec.faults import SYMPTOMS, Reason
from .spec.folder import JobFolder

Look = Callable[[Collection[int], float], Kernel]


@dataclass(frozen=True)
class Outcome:
    """How the job's own process ended. `ended_by_us`: it lived when it was told to end at once."""

    code: int | None
    signal: int | None
    ended_by_us: bool = False
    memory: str = ""  # a sentence about the most memory seen
    seen: Seen = field(default_factory=Seen)


@dataclass(frozen=True)
class Found:
    """Why, in words, and the first rank that failed, where that is known."""

    reason: Reason
    text: str = ""
    rank: int | None = None


def find(folder: JobFolder, outcome: Outcome, look: Look = kernel.unread) -> Ending:
    """Return the job's ending. `look` asks the kernel; where nothing failed nobody asks."""
    raw = log.read(folder)
    told = _told(folder, outcome)
    asked = outcome.signal is not None or log.first_rank(raw).code < 0
    words = look(_pids(outcome.seen, raw), outcome.seen.since) if asked and not outcome.ended_by_us else Kernel()
    found = _found(folder, outcome, told, raw, words)
    found = _with_stopped(found, outcome.seen)
    shown = {} if found.reason.good else collect(folder, outcome.seen, words, raw, found.text)
    return Ending(found.reason, found.text, outcome.code, outcome.signal, found.rank, shown)


def _found(folder: JobFolder, outcome: Outcome, told: Found | None, raw: str, words: Kernel) -> Found:
    if told and told.reason not in {Reason.RANK_FAILED, *SYMPTOMS}:
        return told
    if told and told.reason in SYMPTOMS and outcome.ended_by_us:
        return told
    if outcome.seen.hung:
        return _hung(outcome.seen)
    return _evidence(folder, outcome, told, raw, words)


def _told(folder: JobFolder, outcome: Outcome) -> Found | None:
    """Return what the ranks say of their end, unless that is a stop that nobody asked for."""
    told = _last_word(folder)
    return None if told and told.reason == Reason.STOPPED and not _asked(folder, outcome) else told


def _asked(folder: JobFolder, outcome: Outcome) -> bool:
    """Ranks whose launcher dies are told to end as in a stop, and save; that is not why the job ended."""
    return outcome.code == 0 or outcome.ended_by_us or Path(folder.stop).exists()


def finished(folder: JobFolder) -> tuple[Reason | None, str]:
    """Return what the last `finished` event of this start says; (None, "") where there is none."""
    told = _last_word(folder)
    return (told.reason, told.text) if told else (None, "")


def _last_word(folder: JobFolder) -> Found | None:
    try:
        told = [event for event in tail(Path(folder.events)) if event.kind in (Kind.FINISHED, Kind.START)]
    except FileNotFoundError:
        return None
    if not told or told[-1].kind != Kind.FINISHED:
        return None
    data = told[-1].data
    rank = data.get("rank")
    try:
        return Found(Reason(data["reason"]), str(data.get("text", "")), rank if isinstance(rank, int) else None)
    except (KeyError, ValueError):
        return None


def _evidence(folder: JobFolder, outcome: Outcome, told: Found | None, raw: str, words: Kernel) -> Found:
    if outcome.ended_by_us:
        return Found(Reason.STOPPED_UNSAVED)
    if outcome.code == 0:
        return Found(Reason.STOPPED if Path(folder.stop).exists() else Reason.COMPLETED)
    text = log.plain(raw)
    first = log.first_rank(text)
    rank = first.rank if first.rank is not None else outcome.seen.pids.get(first.pid or 0)
    if who := killed(first, outcome.signal, outcome.code):
        return Found(Reason.KILLED_BY_HOST, killed_text(who, words, outcome.seen, outcome.memory), rank)
    said = told.text if told else ""
    line = log.best([said, *log.failures(text)]) or log.watchdog(text) or _status(outcome, text)
    if told and line == said and told.rank is not None:
        rank = told.rank
    return Found(log.reason(line, text) if line != said else _said_reason(told, text), line, rank)


def _said_reason(told: Found | None, text: str) -> Reason:
    """Return the reason behind the ranks' own word; a neighbour's isn't ours by standing in our log."""
    if told and told.reason == Reason.PEER_ENDED and not log.NEIGHBOUR.search(told.text):
        return told.reason
    return log.reason(told.text if told else "", text)


def _hung(seen: Seen) -> Found:
    first = hang.blamed(seen.hanging)
    return Found(Reason.HANG, hang.sentence(seen.hanging), first.rank if first else None)


def _with_stopped(found: Found, seen: Seen) -> Found:
    """A rank that a signal had stopped came before whatever else happened."""
    if found.reason.good or not seen.stopped:
        return found
    rank, pid = min(seen.stopped.items())
    text = f"rank {rank}, process {pid} on {socket.gethostname()}, had been stopped by a signal"
    return Found(found.reason, f"{text}; then: {found.text}" if found.text else text, rank)


def _pids(seen: Seen, raw: str) -> set[int]:
    first = log.first_rank(raw).pid
    return {*seen.pids, *([first] if first else [])}


def _status(outcome: Outcome, text: str) -> str:
    who, code, *_ = log.first_rank(text)
    if not who:
        who, code = "the process", -outcome.signal if outcome.signal else outcome.code or 0
    how = f"was ended by signal {-code} ({_signal_name(-code)})" if code < 0 else f"ended with status {code}"
    last = (log.before_report(text) or [""])[-1].strip()
    return f"{who} {how}; its last words: {last[:300]}" if last else f"{who} {how}"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else "unknown"
