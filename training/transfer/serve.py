"""The lending server's only command: `python -m training lend-serve PLACE`. Standard library only.

Reads lines {"name", "offset"}; answers each with a line {"size": bytes of the whole file} and the bytes from there on,
or {"error": why}. Only what was lent is served, no link is followed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from .place import Place


def main(argv: list[str]) -> int:
    """Serve until the other side closes."""
    lent = json.loads(Place(argv[0]).listing.read_text("utf-8"))
    folder, names = Path(lent["folder"]), frozenset(lent["names"])
    for line in sys.stdin.buffer:
        _answer(folder, names, json.loads(line), sys.stdout.buffer)
    return 0


def _answer(folder: Path, names: frozenset[str], asked: dict[str, Any], out: BinaryIO) -> None:
    try:
        if asked["name"] not in names:
            raise FileNotFoundError(f"{asked['name']} is not lent")
        file = os.open(folder / asked["name"], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        _say(out, {"error": f"{asked['name']}: {error.strerror or error}"})
        return
    with os.fdopen(file, "rb") as opened:
        size = os.fstat(file).st_size
        _say(out, {"size": size})
        _send(opened, int(asked["offset"]), size, out)


def _say(out: BinaryIO, what: dict[str, Any]) -> None:
    out.write(json.dumps(what).encode() + b"\n")
    out.flush()


def _send(file: BinaryIO, offset: int, size: int, out: BinaryIO) -> None:
    """Send exactly what was announced: a file that has shrunk meanwhile ends the connection."""
    left = size - offset
    file.seek(offset)
    while left > 0:
        block = file.read(min(left, 1 << 20))
        if not block:
            sys.exit(1)
        out.write(block)
        left -= len(block)
    out.flush()
