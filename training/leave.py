"""The end of a rank's process, without taking its interpreter down.

torch's gloo keeps threads of its own for as long as anything refers to a process group, and destroy_process_group
leaves such references (accelerate's state, FSDP's meshes). One that lets go of a tensor while the interpreter goes
down asks for Python's lock, is ended by that within C++ code that may not end so, and takes the process with it:
"terminate called without an active exception", SIGABRT, and a run that was done counts as failed
(github.com/pytorch/pytorch/pull/179291). Nothing of ours waits for the interpreter's end, so it is passed over.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End this process with `status`. What libraries want done at the end is done: trackers send their last lines."""
    try:
        atexit._run_exitfuncs()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
