"""What a model folder holds: every tensor's name, number format, shape and place, read off the files' headers.

A safetensors file is eight bytes of length, a JSON header of that length, and the tensors' bytes. Reading at
offsets, and not through a mapping, keeps a rank's memory to what it asked for: mapped pages count as its own, and a
file cut short while it is read would kill the process without a word.
Format: https://huggingface.co/docs/safetensors (format section).
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..spec.lint import Problem, Refused

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 100_000_000  # bytes; the format's own limit
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Stored:
    """One tensor in a file. `offset`: bytes from the file's beginning."""

    path: Path
    key: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one step along the first dimension; of the whole where there is none."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


class Unfit(Exception):
    """These weights can't be read slice by slice: they need transformers' own loading."""


def stored_in(folder: Path) -> dict[str, Stored]:
    """Return every tensor of the model by its name in the files.

    Raises Unfit where there is no such file, and Refused where one is missing or broken.
    """
    found: dict[str, Stored] = {}
    for name in weight_files(folder):
        found |= read_header(folder / name)
    return found


def weight_files(folder: Path) -> list[str]:
    """Return the names of the files that hold the weights, in order. Raises Unfit, Refused."""
    if (folder / INDEX).is_file():
        try:
            names = set(json.loads((folder / INDEX).read_bytes())["weight_map"].values())
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _broken(folder / INDEX, f"it can't be read ({error})") from None
        if odd := sorted(str(n) for n in names if not isinstance(n, str) or Path(n).name != n):
            raise _broken(folder / INDEX, f"it names {odd[0]!r}, which is no file beside it")
        return sorted(names)
    if (folder / SINGLE).is_file():
        return [SINGLE]
    raise Unfit(f"{folder} has neither {SINGLE} nor {INDEX}")


def read_header(path: Path) -> dict[str, Stored]:
    """Return the tensors of one file. Raises Refused."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(HEADER_LIMIT, size - 8):
                raise ValueError(f"its header would have {length} bytes")
            header: dict[str, Any] = json.loads(file.read(length))
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _stored(path, name, entry, 8 + length, size) for name, entry in entries.items()}
    except FileNotFoundError:
        raise _broken(path, "it is named by the index and is not there") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise _broken(path, f"its header can't be read ({error})") from None


def _stored(path: Path, name: str, entry: Any, start: int, size: int) -> Stored:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"{name} has the number format {entry['dtype']}")
    dtype, shape = DTYPES[entry["dtype"]], tuple(int(n) for n in entry["shape"])
    begin, end = entry["data_offsets"]
    if end - begin != math.prod(shape) * dtype.itemsize or not 0 <= begin <= end <= size - start:
        raise ValueError(f"{name} does not lie in the file's {size} bytes")
    return Stored(path, name, dtype, shape, start + begin)


def _broken(path: Path, reason: str) -> Refused:
    return Refused([Problem("model", f"{path}: {reason}", "Copy the model again, whole.")])
