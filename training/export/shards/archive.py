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
SMALL = 1 << 20  # bytes of a description, which has a few hundred
# What damaged bytes make of a zip file's or a pickle's reader.
UNREADABLE = (
    *(zipfile.BadZipFile, pickle.UnpicklingError, struct.error, EOFError, ArithmeticError, AttributeError),
    *(AssertionError, LookupError, RuntimeError, TypeError, ValueError),
)
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
        tensor = _Description(io.BytesIO(_read(file, records["data.pkl"]))).load()
        order = _read(file, records["byteorder"]) if "byteorder" in records else b"little"
        if order != b"little" or not _is_plain(tensor, size, dtype):
            return None
        record = records[f"data/{tensor.storage.key}"]
        right = record.file_size == tensor.storage.count * tensor.storage.dtype.itemsize
        return _begin(file, record) if right else None
    except (*UNREADABLE, OSError):  # a place that is no offset; a disk that fails does so again when torch reads
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


def _read(file: BinaryIO, record: zipfile.ZipInfo) -> bytes:
    """Return a small record. Its checksum is not looked at: it may be left out, and the file has a better one."""
    if record.file_size > SMALL:
        raise ValueError(f"{record.filename} has {record.file_size} bytes")
    file.seek(_begin(file, record))
    return file.read(record.file_size)


def _begin(file: BinaryIO, record: zipfile.ZipInfo) -> int:
    """Return where a record's contents begin. Raises ValueError where they are not stored as they are."""
    file.seek(record.header_offset)
    signature, *_, name, extra = LOCAL.unpack(file.read(LOCAL.size))
    named = file.read(name) == record.orig_filename.encode()
    if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1 or signature != SIGNATURE or not named:
        raise ValueError(f"{record.filename} is not stored as it is")
    return record.header_offset + LOCAL.size + name + extra


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
