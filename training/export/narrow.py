"""Where a limit is set on the address space (`ulimit -v`): threads that reserve little of it.

By itself each takes 64 MiB for a heap of its own and 8 MiB for its stack, of which it touches next to nothing.
"""

from __future__ import annotations

import ctypes
import resource
import threading

M_ARENA_MAX = -8  # of glibc's malloc.h
STACK = 1 << 20


def narrow() -> None:
    """Have the threads of this process share one heap; nothing is done where there is no limit, or no glibc."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    threading.stack_size(STACK)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)
