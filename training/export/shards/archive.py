"""Where the numbers of a stored piece lie: a piece is a torch.save, a zip file whose records are stored as they are.

Only what torch.save writes of one plain tensor is taken: a description (data.pkl) that rebuilds one tensor without
gaps from one record, little-endian. Of anything else `locate` says None, and the caller lets torch load it.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch

LOCAL = struct.Struct("<4s5H3I2H")  # a record's own header: signature ... length of name, length of extra field
STORAGES = {
    "BFloat16Storage": torch.bfloat16, "HalfStorage": torch.float16, "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64, "LongStorage": torch.int64, "IntStorage": torch.int32, "ShortStorage": torch.int16,
    "CharStorage": torch.int8, "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
}  # fmt: skip
SIGNATURE = b"PK\x03\x04"


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def locate(file: BinaryIO, size: tuple[int, ...], dtype: torch.dtype) -> int | None:
    """Return where in `file`, one piece, the numbers begin of a tensor of this size and dtype; None: not known."""
    try:
        with zipfile.ZipFile(file) as archive:
            records = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            tensor = _Description(io.BytesIO(archive.read(records["data.pkl"]))).load()
            order = archive.read(records["byteorder"]) if "byteorder" in records else b"little"
            if order != b"little" or not _is_plain(tensor, size, dtype):
                return None
            return _begin(file, records[f"data/{tensor.storage.key}"], tensor.storage)
    except (zipfile.BadZipFile, pickle.UnpicklingError, KeyError, EOFError, TypeError, ValueError, struct.error):
        return None


def _is_plain(tensor: Any, size: tuple[int, ...], dtype: torch.dtype) -> bool:
    count, strides = 1, []
    for extent in reversed(size):
        strides.append(count)
        count *= extent
    wanted = _Tensor(_Storage(getattr(getattr(tensor, "storage", None), "key", ""), dtype, count), 0, size, ())
    plain = isinstance(tensor, _Tensor) and (tensor.storage, tensor.offset, tensor.size) == (wanted.storage, 0, size)
    # the stride of a dimension of one is never used
    return plain and all(s == t or n == 1 for s, t, n in zip(tensor.stride, reversed(strides), size, strict=True))


def _begin(file: BinaryIO, record: zipfile.ZipInfo, storage: _Storage) -> int | None:
    bytes_ = storage.count * storage.dtype.itemsize
    if record.compress_type != zipfile.ZIP_STORED or record.file_size != bytes_ or record.flag_bits & 1:
        return None
    file.seek(record.header_offset)
    signature, *_, name, extra = LOCAL.unpack(file.read(LOCAL.size))
    named = file.read(name) == record.orig_filename.encode()
    return record.header_offset + LOCAL.size + name + extra if signature == SIGNATURE and named else None


class _Description(pickle.Unpickler):
    """Reads data.pkl without making what it describes: only the few names that a tensor is made of are known."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        word, dtype, key, _, count = pid
        if word != "storage":
            raise pickle.UnpicklingError(str(word))
        return _Storage(str(key), dtype, int(count))


def _tensor(storage: _Storage, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, *rest: Any) -> _Tensor:
    if rest and rest[0]:
        raise pickle.UnpicklingError("a tensor with properties of its own")
    return _Tensor(storage, offset, tuple(size), tuple(stride))
