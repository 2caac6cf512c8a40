"""PURE: who was killed by signal 9, and by whom as far as the kernel says so."""

from __future__ import annotations

import signal
import socket

from ..spec.faults import NOT_FOR_MEMORY
from .kernel import Kernel
from .log import First
from .scene import Seen

FOR_MEMORY = "killed by the host, out of memory"
PERHAPS = "killed by the host, probably out of memory"


def killed(first: First, number: int | None, code: int | None) -> str:
    """Return who was killed by signal 9, "" where nobody was. `number`, `code`: the launcher's signal or status."""
    if first.code == -signal.SIGKILL:
        return f"{first.who} was killed by signal 9"
    if number == signal.SIGKILL:
        return "the launcher was killed by signal 9"
    # a shell between us and the process reports 128 + 9
    return "a process was killed by signal 9" if code == 128 + signal.SIGKILL else ""


def killed_text(who: str, words: Kernel, seen: Seen, memory: str) -> str:
    """Say that `who` was killed, what the kernel has to say to it, and the most memory that was seen."""
    cause, proof = _cause(words, seen.oom_kills)
    return "; ".join(filter(None, [f"{cause}: {who} on {socket.gethostname()}", proof, memory]))


def _cause(words: Kernel, kills: int | None) -> tuple[str, str]:
    if words.oom:
        return FOR_MEMORY, f"the kernel says: {words.lines[-1]}"
    if kills:
        return FOR_MEMORY, f"its memory group counted {kills} such kills meanwhile"
    if words.other_oom:  # in a container the kernel counts processes otherwise than we see them
        return PERHAPS, f"the kernel killed for memory meanwhile: {words.other_oom[-1]}"
    if words.readable and kills == 0:
        return NOT_FOR_MEMORY, "neither its log nor the memory group tells of it"
    return PERHAPS, ""
