"""Run one job to its end and say how it ended: python -m training supervise FOLDER

Reads job.json and env, starts the job's command in a process group of its own, writes a sample a second,
and when the command ends makes sure that nothing of it is left before exit.json appears. SIGTERM: stop the job,
saving. SIGUSR1: end it now. Use `start` to have it in the background.

Outlives the connection that started it (SIGHUP means nothing to it), a full disk and whatever else it meets, for
nobody else can say how the job ended. Where it is killed itself, `status` says lost, with the processes left.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from . import began, belonging, ending, processes
from .evidence import kernel
from .evidence.scene import LOOK_SECONDS, Scene
from .exitfile import Ending, ExitFile, conclude
from .guarded import guarded, say
from .interrupts import Interrupts
from .jobfiles import read_env, read_job
from .journal import Journal
from .pidfile import PidFile
from .sampling import Sampling
from .spec.faults import Reason
from .spec.folder import JobFolder
from .spec.job import Job
from .spec.mark import MARK

PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Supervise the job in a folder; 1 where it already has or had a supervisor."""
    parser = argparse.ArgumentParser(prog="python -m training supervise", description="Run one job to its end.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ready", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    folder = JobFolder(options.folder.resolve())
    lock = options.lock if options.lock is not None else PidFile(folder).lock()
    if lock is None or PidFile(folder).read() or ExitFile(folder).read():
        print(f"{folder.path}: this job already has or had a supervisor", file=sys.stderr)
        return 1
    os.set_inheritable(lock, False)
    Supervisor(folder, lock).run(options.ready)
    return 0


class Supervisor:
    """One job on one node. `lock`: descriptor of the locked pid file, held until this process ends."""

    def __init__(self, folder: JobFolder, lock: int):
        self.folder, self.lock = folder, lock
        self.path = Path(folder.path)
        self.journal = Journal(Path(folder.samples))
        self.interrupts = Interrupts()

    def run(self, ready: int | None = None) -> Ending:
        """Do everything; the pid file is written before `ready` gets its byte, exit.json when nothing is left."""
        ExitFile(self.folder).reserve()
        PidFile(self.folder).write(self.lock)
        if ready is not None:
            os.write(ready, b"1")
            os.close(ready)
        try:
            end = self._job()
        except Exception as error:  # noqa: BLE001  of whatever kind: an end that isn't told is worse
            end = Ending(Reason.LAUNCH, str(error) or type(error).__name__)
        self._conclude(end)
        return end

    def _conclude(self, end: Ending) -> None:
        """Tell the end. Where the disk doesn't take it, try until it does, or until somebody ends us."""
        file = ExitFile(self.folder)
        guarded(lambda: conclude(self.folder, end, self.journal), None)
        while not guarded(file.read, None) and not self.interrupts.end:
            self.interrupts.wait(LOOK_SECONDS)
            guarded(lambda: file.write(end), None)

    def _job(self) -> Ending:
        job = read_job(self.folder)
        environment = os.environ | read_env(self.folder) | {MARK: str(self.path)}
        if Path(self.folder.stop).exists() or self.interrupts.stop:
            return Ending(Reason.STOPPED_UNSAVED, "asked to stop before it began")
        adopt_orphans()
        before = began.gpu_memory()
        child = self._spawn(job, environment)
        sampling: Sampling | None = None
        try:
            began.write(self.folder, child.pid, before)
            sampling, scene = Sampling(self.journal, job, child.pid, environment), Scene(self.folder)
            by_us = self._watch(child, job.grace_seconds, scene)
            guarded(scene.look, False)
        finally:
            self._end_all(child, min(job.grace_seconds, processes.SHORT_GRACE))
            if sampling:
                sampling.close()
        return self._ending(child.returncode, by_us, sampling, scene)

    def _ending(self, code: int, by_us: bool, sampling: Sampling, scene: Scene) -> Ending:
        status, number = (code, None) if code >= 0 else (None, -code)
        plain = Ending(Reason.RANK_FAILED, "how it ended can't be read from what it left", status, number)
        outcome = ending.Outcome(status, number, by_us, sampling.sampler.peaks(), scene.seen())
        return guarded(lambda: ending.find(self.folder, outcome, kernel.read), plain)

    def _spawn(self, job: Job, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with Path(self.folder.log).open("ab") as log:
            child = subprocess.Popen(
                job.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.path,
                env=environment,
                start_new_session=True,
            )
        # Where memory runs out the kernel should take a rank, not the one who can tell.
        with suppress(OSError):
            Path(f"/proc/{child.pid}/oom_score_adj").write_text("500")
        return child

    def _watch(self, child: subprocess.Popen[bytes], grace: float, scene: Scene) -> bool:
        """Wait for the child's end, or for a hang's; return True where its time is over and it still lives."""
        deadline = None
        while child.poll() is None and not guarded(scene.look, False):
            if self.interrupts.end or (deadline is not None and time.monotonic() >= deadline):
                return True
            if self.interrupts.stop and deadline is None:
                guarded(Path(self.folder.stop).touch, None)
                deadline = time.monotonic() + grace
            left = LOOK_SECONDS if deadline is None else deadline - time.monotonic()
            self.interrupts.wait(max(0.0, min(LOOK_SECONDS, left)))
        return False

    def _end_all(self, child: subprocess.Popen[bytes], grace: float) -> None:
        """End whatever is left: below us (we adopt orphans), and whoever carries the job's mark."""

        def left() -> set[processes.Identity]:
            child.poll()
            return {*processes.descendants(os.getpid()), *belonging.of_job(self.path)}

        for process in processes.end(left, grace):
            say(f"process {process.pid} outlived SIGKILL")
        child.wait()
        reap()


def adopt_orphans() -> None:
    """Become the parent of descendants whose parents die: none can hide, and no zombie stays."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> None:
    """Collect every ended child."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
