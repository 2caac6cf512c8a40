"""Hashes of a file as the storage forms them: of the whole, of each part, and over the parts' hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...spec.deliver.folder import File
from ..source import Source

MOST_PARTS = 9_000  # of the 10,000 that S3 takes
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Part:
    """One part: its number from 1, its bytes, and their hashes in the forms that answers have."""

    number: int
    data: bytes
    sha256: bytes
    md5: bytes

    @property
    def checksum(self) -> str:
        return encoded(self.sha256)

    def is_that(self, answer: Mapping[str, Any]) -> bool:
        """Whether ListParts' entry is this part. Storage without checksums gives the MD5 as the ETag."""
        if answer.get("Size", len(self.data)) != len(self.data):
            return False
        if said := answer.get("ChecksumSHA256"):
            return str(said) == self.checksum
        return str(answer.get("ETag", "")).strip('"') == self.md5.hex()


@dataclass
class Digests:
    """What is known of a file when all its parts went by."""

    whole: Any = field(default_factory=hashlib.sha256)
    sha256: list[bytes] = field(default_factory=list)
    md5: list[bytes] = field(default_factory=list)

    def add(self, data: bytes) -> Part:
        """Take the next part in."""
        self.whole.update(data)
        self.sha256.append(hashlib.sha256(data).digest())
        self.md5.append(hashlib.md5(data, usedforsecurity=False).digest())
        return Part(len(self.sha256), data, self.sha256[-1], self.md5[-1])

    @property
    def checksums(self) -> set[str]:
        """The forms that x-amz-checksum-sha256 of the object may have.

        Of an upload in parts it is the hash over the parts' hashes, with or without their number; some storage has
        the whole object's.
        """
        composite = encoded(hashlib.sha256(b"".join(self.sha256)).digest())
        whole = encoded(self.whole.digest())
        return {whole, composite, f"{composite}-{len(self.sha256)}"}

    @property
    def etags(self) -> set[str]:
        """The forms that an ETag without encryption has."""
        composite = hashlib.md5(b"".join(self.md5), usedforsecurity=False).hexdigest()
        return {self.md5[0].hex() if len(self.md5) == 1 else "", f"{composite}-{len(self.md5)}"} - {""}


def encoded(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def part_size(size: int, megabytes: int) -> int:
    """Return the bytes of a part of a file of `size` bytes: as asked for, or more where there would be too many."""
    fewest = -(-size // MOST_PARTS)
    return max(megabytes * MEGABYTE, -(-fewest // MEGABYTE) * MEGABYTE)


def parts(source: Source, file: File, size: int, digests: Digests) -> Iterator[Part]:
    """Yield the file's parts of `size` bytes, one in memory at a time; `digests` knows all of them afterwards."""
    if file == source.marker:
        yield digests.add(source.sums)
        return
    with source.open(file) as opened:
        done = 0
        while done < file.size or not done:
            data = opened.read(min(size, file.size - done))
            yield digests.add(data)
            done += len(data)
            if not data:
                return
