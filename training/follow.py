"""Give what many growing files gain, over one pipe: `python -m training follow`. Standard library only.

Standard input tells which files, one JSON object a line: {"add": 7, "path": "/...", "offset": 120} begins with a file,
which need not be there yet; {"drop": 7} ends with it; any other object only says that somebody still listens.

Standard output begins with HELLO, for a login may have printed above it. Then come frames: `id offset length`, a
newline, and so many bytes, which stand at `offset` of the file `id`. They end with a line's end, unless a line grows
beyond LONG bytes: what a full disk left of a torn line is cut off by its writer, and must not have been given. A frame
of id 0 is a beat. It ends when standard input does, and when nothing was heard from there for DEAF_SECONDS.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator

HELLO = b"shardboard follow 1\n"
PAUSE, LONGEST_PAUSE = 0.02, 0.25  # seconds between two looks at all files
SHARE = 0.05  # of a processor that looking may take: thousands of files are looked at less often
BLOCK = 1 << 18  # of one file at one look, so that a long one does not hold back the others
LONG = 1 << 16
BEAT_SECONDS = 5.0
DEAF_SECONDS = 60.0
GONE = 2  # exit status of one that nobody talks to any more


class Followed:
    """One file. `offset`: behind what was given. `looked`: up to where it was read; no news while it ends there."""

    __slots__ = ("looked", "offset", "path")

    def __init__(self, path: str, offset: int):
        self.path, self.offset, self.looked = path, offset, -1

    def news(self) -> bytes:
        """Return what came since; of a file that is not there, or shorter than what was given, nothing."""
        try:
            if os.stat(self.path).st_size == self.looked:
                return b""
            with open(self.path, "rb", buffering=0) as file:
                file.seek(self.offset)
                block = file.read(BLOCK)
        except OSError:
            return b""
        self.looked = self.offset + len(block)
        given = block if len(block) > LONG and b"\n" not in block else block[: block.rfind(b"\n") + 1]
        self.offset += len(given)
        return given


class Files:
    """What is followed now, by id, as standard input told it."""

    def __init__(self) -> None:
        self._files: dict[int, Followed] = {}
        self._torn = b""

    def told(self, block: bytes) -> None:
        """Take what came on standard input."""
        *lines, self._torn = (self._torn + block).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, order: dict[str, object]) -> None:
        if "add" in order:
            self._files[int(str(order["add"]))] = Followed(str(order["path"]), int(str(order["offset"])))
        elif "drop" in order:
            self._files.pop(int(str(order["drop"])), None)

    def frames(self) -> Iterator[bytes]:
        """Look at every file once; yield a frame of each that has news."""
        for number, file in self._files.items():
            at = file.offset
            if block := file.news():
                yield b"%d %d %d\n%s" % (number, at, len(block), block)


def follow(source: int, sink: int) -> int:
    """Follow until `source` ends (0) or nobody is heard on it (GONE); both are file descriptors."""
    files = Files()
    heard = beaten = time.monotonic()
    write(sink, HELLO)
    pause = 0.0
    while True:
        if select.select([source], [], [], pause)[0]:
            block = os.read(source, BLOCK)
            if not block:
                return 0
            files.told(block)
            heard = time.monotonic()
        began, spent = time.monotonic(), time.process_time()
        news = b"".join(files.frames())
        if began - beaten > BEAT_SECONDS:
            beaten, news = began, news + b"0 0 0\n"
        write(sink, news)
        if began - heard > DEAF_SECONDS:
            return GONE
        # by what it cost, not by how long it took: on a busy node it may just have waited for its turn
        pause = min(LONGEST_PAUSE, max(PAUSE, (time.process_time() - spent) / SHARE))


def write(sink: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(sink, left) :]


def main(argv: list[str]) -> int:
    """Follow what standard input names; 2 where it is no longer heard, or with arguments."""
    if argv:
        print("usage: python -m training follow < orders > frames: what many growing files gain", file=sys.stderr)
        return 2
    try:
        return follow(0, 1)
    except (BrokenPipeError, KeyboardInterrupt):  # nobody listens
        return 0
