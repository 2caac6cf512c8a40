"""A rank for test_hang.py: python -m tests.training.hanging FOLDER SECONDS HOW

Watches itself with a limit of SECONDS and makes no progress: `python` waits in Python, `c` in a C function that
keeps Python's lock, `collective` (two ranks by RANK and MASTER_PORT) has the second one wait in Python while the
first waits for it in a barrier. It goes on when the file `go` appears in FOLDER, or after that function's time.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path, PurePosixPath

from training.spec.folder import JobFolder
from training.watch.hang import HangWatch
from training.watch.pulse import Pulse

C_SECONDS = 3


def main(folder: Path, seconds: float, how: str) -> None:
    rank = int(os.environ["RANK"])
    if how == "collective":
        import torch.distributed as dist

        dist.init_process_group("gloo")
    pulse = Pulse("loading")
    with HangWatch(pulse, JobFolder(PurePosixPath(folder)), rank, seconds):
        pulse.step = 41
        pulse.beat("forward_backward")
        print("up", flush=True)
        if how == "c":
            keeps_the_lock()
        elif rank == int(os.environ.get("HANGS", "0")):
            waits(folder / "go")
        if how == "collective":
            dist.barrier()
        pulse.beat("optimizer")
    print("through", flush=True)


def waits(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


def keeps_the_lock() -> None:
    ctypes.PyDLL(None).sleep(C_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
