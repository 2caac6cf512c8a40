"""A large export through the web server: python -m tests.bench.download [--gigabytes 5] [--rate 118]

Starts the whole service with an export on a loopback host, and downloads it as one archive, three times: straight
through; left at three places and gone on with from there; and with the web server killed on the way. The bytes must
be the same each time, and every file that tarfile finds in them must have its own hash. Meanwhile the run's page is
asked for again and again, as beforehand without a download, and ten times a second the web server is weighed.
The reader takes what a gigabit link carries (--rate, in MB/s; 0: all it gets). Node, web server, reader and the
asker of pages share this machine's processors; a node of its own would leave the site more of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from tests.e2e.stack import ROOT, Stack, until

from . import figures, place
from .reading import BLOCK, Found, Resuming, Where, unpack

FILES = 5
SEED = 4
MEMORY_GOAL = 64.0  # MiB that the web server may grow by
LATENCY_GOAL = 2.0  # times the page's own latency
NODE = f"{place.CLUSTER}-{place.HOST_NAME}"


@dataclass(frozen=True)
class There:
    """The export, and what must be in its archive."""

    stack: Stack
    run: int
    export: int
    session: str
    files: list[dict[str, Any]]

    @property
    def size(self) -> int:
        return sum(file["size"] for file in self.files)


@dataclass
class Beside:
    """What was seen meanwhile: ms of each page, bytes of the web server."""

    pages: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.download", description="A large download.")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=118.0, help="MB/s that the reader takes at most; 0: all it gets")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-download-") as folder:
        stack = Stack(Path(folder).resolve())
        try:
            stack.start()
            there = put_there(stack, round(options.gigabytes * 1e9))
            return report(*measure(there, options.rate))
        finally:
            stack.stop()


def put_there(stack: Stack, size: int) -> There:
    """Put `size` bytes of model files on a node and make their rows."""
    place.add_node(stack)
    drafts = stack.state / "big"
    drafts.mkdir()
    files = [
        _random_file(drafts / f"model-{n + 1:05}-of-{FILES:05}.safetensors", size // FILES, n) for n in range(FILES)
    ]
    listed = stack.state / "files.json"
    listed.write_text(json.dumps(files))
    words = [sys.executable, "-m", "tests.bench.big_export", NODE, str(listed)]
    made = json.loads(subprocess.run(words, cwd=ROOT, env=stack.env, check=True, stdout=subprocess.PIPE).stdout)
    folder = Path(made["folder"])
    folder.parent.mkdir(parents=True)
    drafts.rename(folder)
    return There(stack, made["run"], made["export"], made["session"], files)


def _random_file(path: Path, size: int, seed: int) -> dict[str, Any]:
    noise, digest, left = random.Random(SEED + seed), hashlib.sha256(), size
    with path.open("wb") as file:
        while left:
            block = noise.randbytes(min(BLOCK, left))
            file.write(block)
            digest.update(block)
            left -= len(block)
    return {"name": path.name, "size": size, "sha256": digest.hexdigest()}


def measure(there: There, rate: float) -> tuple[There, Beside, Beside, list[float], list[str]]:
    """Return what was seen without a download and beside it, seconds of each, and what came out wrong."""
    alone, beside = Beside(), Beside()
    with _looking(there, alone):
        until("a hundred pages", lambda: len(alone.pages) >= 100)
    noise = random.Random(SEED)
    stops = sorted(noise.randrange(there.size) for _ in range(3))
    took, found = [], {}
    with _looking(there, beside):
        for name, leave in (("straight through", []), (f"left at {stops}", stops)):
            began = time.monotonic()
            found[name] = _download(there, leave, rate)
            took.append(time.monotonic() - began)
    found["web server killed"] = _through_a_kill(there, noise.randrange(there.size // 4, there.size // 2))
    first, wanted = next(iter(found.values())), {file["name"]: file["sha256"] for file in there.files}
    return there, alone, beside, took, [name for name, each in found.items() if each != (first[0], wanted)]


@contextmanager
def _looking(there: There, seen: Beside) -> Iterator[None]:
    threads = [threading.Thread(target=look, args=(there, seen)) for look in (_ask_pages, _weigh)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        seen.done.set()
        for thread in threads:
            thread.join()


def _ask_pages(there: There, seen: Beside) -> None:
    request = urllib.request.Request(f"{there.stack.url}/runs/{there.run}/", headers={"Cookie": there.session})
    while not seen.done.wait(0.05):
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:
            page = answer.read()
        seen.pages.append((time.perf_counter() - began) * 1000)
        assert b"a run with a large export" in page, answer.url


def _weigh(there: There, seen: Beside) -> None:
    web = there.stack.child("web")
    while not seen.done.wait(0.1):
        seen.memory.append(sum(p.memory_full_info().uss for p in (web, *web.children(recursive=True))))


def _download(there: There, leave: Sequence[int], rate: float) -> Found:
    """Download in a process of its own, leaving at these offsets; return the hash of all, and of each file in it."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    where = Where(there.stack.port, there.stack.token, there.export, rate * 1e6)
    process = multiprocessing.get_context("spawn").Process(target=_read, args=(theirs, where, list(leave)))
    process.start()
    try:
        return cast(Found, ours.recv())
    finally:
        process.join()


def _read(out: Connection, where: Where, leave: list[int]) -> None:
    out.send(unpack(Resuming(where, leave)))


def _through_a_kill(there: There, at: int) -> Found:
    """Kill the web server with `at` bytes read, wait for the next one, go on."""

    def kill() -> None:
        there.stack.kill("web")
        until("the web server to be back", there.stack.healthy)

    return unpack(Resuming(Where(there.stack.port, there.stack.token, there.export), [at], kill))


def report(there: There, alone: Beside, beside: Beside, took: Sequence[float], wrong: Sequence[str]) -> int:
    """Print the figures; return 0 where all goals hold."""
    gigabytes = there.size / 1e9
    print(
        f"{gigabytes:.2f} GB through the web server: {took[0]:.1f} s ({gigabytes / took[0] * 1000:.0f} MB/s);"
        f" left three times and gone on with: {took[1]:.1f} s; load average {figures.load():.1f}"
    )
    hashes = "three downloads (straight through, left three times, web server killed), all bytes and each file's hash"
    goals = [
        (f"{hashes}: {', '.join(wrong) or 'none'} differs; goal none", not wrong),
        _memory(alone, beside),
        _latency(alone, beside),
    ]
    for line, holds in goals:
        print(f"{line}: {'holds' if holds else 'falls short'}")
    return 0 if all(holds for _, holds in goals) else 1


def _memory(alone: Beside, beside: Beside) -> tuple[str, bool]:
    before, peak = max(alone.memory), max(beside.memory)
    grown = (peak - before) / (1 << 20)
    text = f"web server's own memory: {before / (1 << 20):.0f} MiB before, at most {peak / (1 << 20):.0f} MiB beside"
    return f"{text}, {grown:.0f} MiB more; goal {MEMORY_GOAL:.0f} MiB", grown <= MEMORY_GOAL


def _latency(alone: Beside, beside: Beside) -> tuple[str, bool]:
    own, other = statistics.median(alone.pages), statistics.median(beside.pages)
    high, other_high = (figures.percentile(seen.pages, 0.95) for seen in (alone, beside))
    text = (
        f"the run's page, {len(alone.pages)} times alone: median {own:.0f} ms, 95% {high:.0f} ms;"
        f" {len(beside.pages)} times beside a download: median {other:.0f} ms, 95% {other_high:.0f} ms"
    )
    return f"{text}; the median's ratio {other / own:.2f}; goal {LATENCY_GOAL:.1f}", other <= LATENCY_GOAL * own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
