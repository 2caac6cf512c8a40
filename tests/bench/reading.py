"""An export's archive as a client reads it: resumed where it was left, unpacked and hashed on the way."""

from __future__ import annotations

import hashlib
import http.client
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

BLOCK = 1 << 20
Found = tuple[str, dict[str, str]]  # hash of all bytes, and of each file


def unpack(source: Resuming) -> Found:
    """Read the tar to its end."""
    with tarfile.open(fileobj=source, mode="r|", bufsize=BLOCK) as tar:  # type: ignore[call-overload]
        files = {PurePosixPath(entry.name).name: _hash(tar.extractfile(entry)) for entry in tar}
    while source.read(BLOCK):
        pass
    return source.digest.hexdigest(), files


def _hash(file: Any) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Where:
    """Whom to ask for what, and how fast it is read."""

    port: int
    token: str
    export: int
    rate: float = 0.0  # bytes a second at most; 0: no limit

    def ask(self, at: int, tag: str) -> http.client.HTTPResponse:
        """Ask for the archive from byte `at` on, as long as it has this tag. Nothing else than that is taken."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Range": f"bytes={at}-", "If-Range": tag} if at else {})
        connection.request("GET", f"/api/v1/exports/{self.export}/archive", headers=headers)
        answer = connection.getresponse()
        if answer.status != (206 if at else 200):
            raise AssertionError(f"{answer.status}: {answer.read(1000)!r}")
        return answer


class Resuming:
    """The archive as a file to read once. Its connection is left at each of `leave`; then `meanwhile` is called."""

    def __init__(self, where: Where, leave: list[int], meanwhile: Callable[[], None] = lambda: None):
        self.where, self.leave, self.meanwhile = where, leave, meanwhile
        self.digest, self.at, self.tag = hashlib.sha256(), 0, ""
        self.began = time.monotonic()
        self.answer = self._ask()

    def read(self, count: int) -> bytes:
        if self.leave and self.at >= self.leave[0]:
            del self.leave[0]
            self.meanwhile()
            self.answer.close()
            self.answer = self._ask()
        block = self.answer.read(count)
        self.digest.update(block)
        self.at += len(block)
        if self.where.rate:
            time.sleep(max(0.0, self.began + self.at / self.where.rate - time.monotonic()))
        return block

    def _ask(self) -> http.client.HTTPResponse:
        answer = self.where.ask(self.at, self.tag)
        self.tag = answer.headers["ETag"]
        return answer
