"""A rank for test_hang.py: python -m tests.training.hanging FOLDER SECONDS HOW

Watches itself with a limit of SECONDS and makes no progress: `python` waits in Python, `c` in a C function that
keeps Python's lock. It goes on when the file `go` appears in FOLDER, or after that function's time.
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
    pulse = Pulse("forward_backward")
    with HangWatch(pulse, JobFolder(PurePosixPath(folder)), rank, seconds):
        pulse.step = 41
        print("up", flush=True)
        if how == "c":
            keeps_the_lock()
        else:
            waits(folder / "go")
        pulse.beat("optimizer")
    print("through", flush=True)


def in_front_of_a_barrier(folder: Path, seconds: float, rank: int, port: int) -> None:
    """Be one rank of two, of which the second comes to a barrier only when the file `go` is there."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    with HangWatch(Pulse("forward_backward"), JobFolder(PurePosixPath(folder)), rank, seconds):
        if rank == 1:
            waits(folder / "go")
        dist.barrier()


def waits(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


def keeps_the_lock() -> None:
    ctypes.PyDLL(None).sleep(C_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
