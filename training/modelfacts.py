"""What a model folder holds, by the headers of its files alone: nothing is loaded. Standard library only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADER_MOST = 100_000_000  # bytes; the format allows no longer header


def parameters(folder: Path) -> int | None:
    """Return the parameters in the folder's safetensors files, tied ones once; None where that can't be told."""
    try:
        files = sorted(folder.glob("*.safetensors"))
        counts = [_count(entry) for path in files for name, entry in _header(path).items() if name != "__metadata__"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # whatever a broken header may hold
        return None
    return sum(counts) or None


def _header(path: Path) -> dict[str, Any]:
    """Source of the layout: the safetensors format, 8 bytes of length (little endian), then JSON."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > HEADER_MOST:
            raise ValueError(f"{path.name} has a header of {length} bytes")
        found: dict[str, Any] = json.loads(file.read(length))
        return found


def _count(entry: dict[str, Any]) -> int:
    total = 1
    for size in entry["shape"]:
        total *= int(size)
    return total
