"""What a model folder holds, by the headers of its files alone: nothing is loaded. Standard library only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADS = ("lm_head.weight", "embed_out.weight")
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
OTHER = (*EMBEDDINGS, "wpe.weight", "embed_positions.weight")  # of two dimensions and no linear layer
HEADER_MOST = 100_000_000  # bytes; the format allows no longer header


def parameters(folder: Path) -> int | None:
    """Return the parameters in the folder's safetensors files, tied ones once; None where that can't be told."""
    found = shapes(folder)
    return found["parameters"] if found else None


def shapes(folder: Path) -> dict[str, Any] | None:
    """Return what spec.forecast.Shape is made of; None where that can't be told.

    `parameters` and `tensors`, tied ones once; `tied`: numbers of the embeddings that are the head as well; `layers`:
    [name of a linear layer, its rows, its columns, how many there are].
    """
    try:
        files = sorted(folder.glob("*.safetensors"))
        entries = {name: entry for path in files for name, entry in _header(path).items() if name != "__metadata__"}
        counts = {name: _count(entry) for name, entry in entries.items()}
        if not sum(counts.values()):
            return None
        return {
            "parameters": sum(counts.values()),
            "tensors": len(counts),
            "tied": _tied(counts),
            "layers": _layers(entries),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # whatever a broken header may hold
        return None


def _tied(counts: dict[str, int]) -> int:
    """A model with embeddings and without a head of its own takes the embeddings for it."""
    if any(name.endswith(HEADS) for name in counts):
        return 0
    return next((count for name, count in counts.items() if name.endswith(EMBEDDINGS)), 0)


def _layers(entries: dict[str, Any]) -> list[list[Any]]:
    found: dict[tuple[str, int, int], int] = {}
    for name, entry in entries.items():
        if name.endswith(".weight") and len(entry["shape"]) == 2 and not name.endswith((*HEADS, *OTHER)):
            key = (name.split(".")[-2], int(entry["shape"][0]), int(entry["shape"][1]))
            found[key] = found.get(key, 0) + 1
    return [[*key, count] for key, count in sorted(found.items())]


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
