"""One export, unbroken; and the same export killed at a drawn moment and started again."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.exporting import ways
from training.spec.events import Event, Kind
from training.spec.job import ExportJob

ROOT = Path(__file__).parents[2]
PHASES = ("check", "stream", "prove")
PATIENCE = 600
LOOK = 0.002
SOONEST = 0.02  # share of a phase; what is over by then was not killed


@dataclass(frozen=True)
class Outcome:
    """`phase` and `share` of the kill as drawn; `kept`: bytes that were not written again, None where it began anew."""

    phase: str
    share: float
    killed: bool
    kept: int | None
    differs: list[str]

    def __str__(self) -> str:
        went = "began anew" if self.kept is None else f"went on, {self.kept:,} bytes not written again"
        equal = f"differs in {', '.join(self.differs)}" if self.differs else "identical"
        how = f"killed in {self.phase}, {self.share:.0%} of its time in" if self.killed else "ended before its kill"
        return f"{how}; {went}; {equal}"


@dataclass
class Broken:
    """`took`: seconds of each phase of the unbroken export, `truth` the hash of each of its files."""

    folder: Path
    took: dict[str, float]
    truth: dict[str, str]

    @classmethod
    def of(cls, folder: Path) -> Broken:
        """Export once, unbroken, what `making` left in `folder`."""
        job = _job(folder)
        assert start(folder).wait(PATIENCE) == 0, ways.events(job)[-1]
        told = ways.events(job)
        begins = [next(e.at for e in told if e.data.get("phase") == phase) for phase in PHASES] + [told[-1].at]
        took = {phase: begins[i + 1] - begins[i] for i, phase in enumerate(PHASES)}
        truth = hashes(Path(job.out))
        _clean(job)
        return cls(folder, took, truth)

    def trial(self, seed: int) -> Outcome:
        """Kill, start again, compare. An export that was faster than its kill is tried again, killed sooner."""
        dice = random.Random(seed)
        phase, share = PHASES[seed % len(PHASES)], dice.random()
        while not (outcome := self._killed(phase, share)).killed and share > SOONEST:
            share /= 2
        return outcome

    def _killed(self, phase: str, share: float) -> Outcome:
        job = _job(self.folder)
        process = start(self.folder)
        _until(process, job, phase)
        time.sleep(share * self.took[phase])  # the moment itself, not a wait for something
        killed = kill(process) and Kind.FINISHED not in {event.kind for event in ways.events(job)}
        if killed:
            assert start(self.folder).wait(PATIENCE) == 0, ways.events(job)[-1]
        told = ways.events(job)
        found = hashes(Path(job.out))
        _clean(job)
        differs = sorted(name for name in found | self.truth if found.get(name) != self.truth.get(name))
        return Outcome(phase, share, killed, kept(told), differs)


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the command in a process group of its own, as the supervisor does."""
    return subprocess.Popen(ways.export_command(folder), cwd=ROOT, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill the whole group; return whether the command was still at work."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def kept(told: list[Event]) -> int | None:
    """Return what the last start said that it took over."""
    found = [event.data["kept"] for event in told if event.kind == Kind.WARNING and "kept" in event.data]
    return found[-1] if found else None


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def _until(process: subprocess.Popen[bytes], job: ExportJob, phase: str) -> None:
    end = time.monotonic() + PATIENCE
    while not any(event.data.get("phase") == phase for event in ways.events(job)):
        assert process.poll() is None, "the export ended before the phase"
        assert time.monotonic() < end, "the phase never began"
        time.sleep(LOOK)


def _job(folder: Path) -> ExportJob:
    return ways.export_job(folder, dtype="bfloat16", max_shard_bytes=300_000_000)


def _clean(job: ExportJob) -> None:
    shutil.rmtree(Path(job.out).parent)
    Path(job.events).unlink()
