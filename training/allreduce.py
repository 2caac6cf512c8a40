"""Add up one tensor of 64 KiB over all hosts: python -m training all-reduce --rank R --world N --address A --port P

One process a host, started on all at the same time; the first host listens. Over NCCL with `--cuda`, on its first GPU,
else over gloo. It takes many packets, so that a path which lets only small ones through (a wrong MTU) is found, too.
Prints {"sum", "seconds", "backend"} or {"error": why}, and ends within `--seconds` whatever hangs.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from datetime import timedelta
from typing import Any

JOIN_SECONDS = 45.0  # until all have come: each has imported torch first, one from a slower disk than the other
ADD_SECONDS = 8.0
NUMBERS = 1 << 14  # of four bytes


def main(argv: list[str]) -> int:
    """Print what came of it; 0 in any case: that is the answer."""
    parser = argparse.ArgumentParser(prog="python -m training all-reduce", description="Add one tensor over hosts.")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--address", required=True, help="of the host with rank 0")
    parser.add_argument("--port", type=int, required=True, help="free on that host")
    parser.add_argument("--interface", required=True)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--seconds", type=float, default=90.0, help="after which it is given up")
    args = parser.parse_args(argv)
    os.environ |= {"GLOO_SOCKET_IFNAME": args.interface, "NCCL_SOCKET_IFNAME": args.interface}
    limit = threading.Timer(args.seconds, _give_up, [args.seconds])
    limit.daemon = True
    limit.start()
    print(json.dumps(_added(args)), flush=True)
    os._exit(0)  # a backend that is broken may hang in taking itself down


def _give_up(seconds: float) -> None:
    print(json.dumps({"error": f"no end within {seconds:.0f} s"}), flush=True)
    os._exit(0)


def _added(args: argparse.Namespace) -> dict[str, Any]:
    import torch
    from torch import distributed

    backend = "nccl" if args.cuda else "gloo"
    try:
        joining = timedelta(seconds=JOIN_SECONDS)
        store = distributed.TCPStore(args.address, args.port, args.world, args.rank == 0, joining)
        adding = timedelta(seconds=ADD_SECONDS)
        began = time.monotonic()
        distributed.init_process_group(backend, store=store, rank=args.rank, world_size=args.world, timeout=adding)
        value = torch.full((NUMBERS,), float(args.rank + 1), device="cuda:0" if args.cuda else "cpu")
        distributed.all_reduce(value)
        total = int(value.max().item())
        seconds = time.monotonic() - began
        _wait_for_all(store, args.world)
    except (RuntimeError, ValueError) as error:  # every error of torch.distributed is one
        return {"error": " ".join(str(error).split())[:300]}
    expected = args.world * (args.world + 1) // 2
    if total != expected:
        return {"error": f"the sum is {total} and should be {expected}"}
    return {"sum": total, "seconds": round(seconds, 3), "backend": backend}


def _wait_for_all(store: Any, world: int) -> None:
    """Stay until every host has its sum: the first one holds the store."""
    deadline = time.monotonic() + ADD_SECONDS
    store.add("done", 1)
    while store.add("done", 0) < world and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)  # the others ask, too
