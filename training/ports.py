"""Name a free TCP port: python -m training free-port ADDRESS; prints {"port": n}. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys

from .spec.ports import free_port


def main(argv: list[str]) -> int:
    """Print a port that is free on one of this host's addresses; 1 where the address isn't this host's."""
    parser = argparse.ArgumentParser(prog="python -m training free-port", description="Name a free TCP port.")
    parser.add_argument("address")
    address = parser.parse_args(argv).address
    try:
        print(json.dumps({"port": free_port(address)}))
    except OSError as error:
        print(f"address: {address!r} is not one of this host's ({error}). Name an address from preflight's list.",
              file=sys.stderr)  # fmt: skip
        return 1
    return 0
