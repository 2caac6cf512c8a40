"""Which processes are a job's, and by what that is known.

Nearly all carry its mark in their environment (processes.MARK). One that cleared its environment is found by the group
or session that the supervisor began, or by working in the job's folder. No word of a command line counts for anything,
and nothing of another user, of another job, older than the job, or at a person's terminal.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from . import began, processes
from .pidfile import PidFile
from .processes import Identity, Stat
from .spec.folder import JobFolder
from .spec.mark import MARK

TERMINAL = b"SSH_TTY"  # in the environment of whatever a person began in a session of his own, nohup or not


def of_job(folder: Path) -> list[Identity]:
    """Return the job's living processes, its supervisor and this process left out, sorted by pid."""
    return list(evidence(folder))


def evidence(folder: Path) -> dict[Identity, str]:
    """Return each of the job's living processes with how it is known: environment, group, session or folder."""
    job = JobFolder(PurePosixPath(folder))
    leader = began.leader(job)
    if leader and (leader.boot != processes.boot_id() or Identity.of(leader.pid) not in (None, leader)):
        leader = None  # the host, or the number, has begun anew
    not_ours = {os.getpid(), found.pid if (found := PidFile(job).supervisor()) else 0}
    known = {}
    for pid in processes.pids():
        if pid not in not_ours and (stat := processes.stat(pid)) and (how := _how(pid, stat, folder, leader)):
            known[stat.identity(pid)] = how
    return known


def _how(pid: int, stat: Stat, folder: Path, leader: Identity | None) -> str:
    environment = processes.environment(pid)
    if mark := environment.get(MARK.encode()):
        return "environment" if Path(os.fsdecode(mark)) == folder else ""
    if leader is None or stat.started < leader.started or not _is_mine(pid):
        return ""
    if leader.pid in (stat.group, stat.session):
        return "group" if leader.pid == stat.group else "session"
    works_here = not stat.terminal and TERMINAL not in environment and _works_in(pid, folder)
    return "folder" if works_here else ""


def _is_mine(pid: int) -> bool:
    try:
        return (processes.PROC / str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False


def _works_in(pid: int, folder: Path) -> bool:
    try:
        return Path(os.readlink(processes.PROC / str(pid) / "cwd")).is_relative_to(folder)
    except OSError:
        return False
