"""One follower reads 200 runs of 2 nodes: python -m tests.bench.following [--runs 200] [--seconds 60] [--hosts 2]

On each host a process writes what the jobs of its runs would: a sample of 8 GPUs a second of each, and on rank 0 a step
a second, with its line of log. `python -m workers.follow` reads them over SSH. A line's lag is from the time that it
carries until another connection to the database sees its row; that one looks 20 times a second, which is in the lag.
Hosts are OpenSSH in namespaces of their own, which needs root; --loopback takes our own SSH server on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.ssh_hosts import SshHost, ssh_hosts

from .. import figures

GOAL = 1.0  # seconds
LOOK = 0.05
LATE = 120.0  # for the follower to be there, and for the last lines


def main(argv: list[str]) -> int:
    options = _options(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-following-") as name, ExitStack() as stack:
        from . import service

        folder = Path(name)
        os.environ["SHARDBOARD_STATE"] = str(folder / "state")
        stack.enter_context(service.database(options.postgres))
        stack.enter_context(service.private_redis(folder / "redis"))
        return _measured(options, folder, stack)


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.following")
    parser.add_argument("--runs", type=int, default=200, help="each on two nodes")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--hosts", type=int, default=2, help="over which the runs' nodes are spread; an even number")
    parser.add_argument("--loopback", action="store_true", help="our own SSH server; needs no root")
    parser.add_argument("--postgres", action="store_true", help="a private PostgreSQL in the place of SQLite")
    return parser.parse_args(argv)


def _measured(options: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    _migrate()
    from webapp.fleet.ssh import make_identity

    from . import rows, service

    pair = make_identity()
    hosts = stack.enter_context(_hosts(options, folder, pair.public))
    held = rows.make([place for place, _ in hosts], pair.private, pair.public, options.runs)
    process = stack.enter_context(service.follower(folder / "follower.log"))
    writers = [
        _writer(host, place, number % 2, options.seconds, held[number]) for number, (place, host) in enumerate(hosts)
    ]
    _settled(2 * options.runs)
    cost = service.Cost(process)
    cost.begin()
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    lags, told = _watched(writers)
    cost.end()
    written = sum(answer["lines"] for answer in told)
    kept = _settled(written)
    print((folder / "follower.log").read_text("utf-8")[-3000:], file=sys.stderr, end="")
    return _told(options, lags, written, kept, cost)


def _migrate() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


@contextmanager
def _hosts(options: argparse.Namespace, folder: Path, key: str) -> Iterator[list[tuple[Any, SshHost | None]]]:
    from tests.sshd import Sshd

    from .rows import Place

    if not options.loopback:
        with ssh_hosts(folder / "hosts", key, options.hosts) as found:
            yield [(Place.of(host), host) for host in found]
        return
    servers = [Sshd(key) for _ in range(options.hosts)]
    try:
        yield [(Place(s.address, s.port, s.host_key, str(folder / f"n{i}")), None) for i, s in enumerate(servers)]
    finally:
        for server in servers:
            server.finish()


def _writer(host: SshHost | None, place: Any, rank: int, seconds: float, runs: Sequence[int]) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.bench.following.writer", place.scratch, str(rank), str(seconds)]
    within = _within(host) if host else []
    pipe = subprocess.PIPE
    return subprocess.Popen([*within, *argv, *map(str, runs)], stdin=pipe, stdout=pipe, text=True)


def _within(host: SshHost) -> list[str]:
    """Return what, before a command, runs it in the host's namespaces, here."""
    (first,) = Path(f"/proc/{host.init.pid}/task/{host.init.pid}/children").read_text().split()
    return ["nsenter", "-t", first, "-n", "-m", "-p", "-r", "env", f"--chdir={Path.cwd()}"]


def _watched(writers: list[subprocess.Popen[str]]) -> tuple[list[float], list[dict[str, Any]]]:
    """Return the lag of each line, in seconds, and what the writers said; when all is written and has come."""
    from . import rows

    last, lags, quiet = 0, list[float](), 0.0
    while quiet < 2.0 or any(writer.poll() is None for writer in writers):
        found = rows.past(last)
        now = time.time()
        lags += [now - at.timestamp() for _, at, _ in found]
        last = found[-1][0] if found else last
        quiet = 0.0 if found else quiet + LOOK
        time.sleep(LOOK)
    return lags, [json.loads(writer.communicate()[0]) for writer in writers]


def _settled(written: int) -> int:
    """Return how many lines are stored, once none comes any more."""
    from . import rows

    until = time.monotonic() + LATE
    while (kept := rows.stored()) < written and time.monotonic() < until:
        time.sleep(0.5)
    return kept


def _told(options: argparse.Namespace, lags: list[float], written: int, kept: int, cost: Any) -> int:
    high, load = figures.percentile(lags, 0.99), figures.load()
    where = "loopback" if options.loopback else f"{options.hosts} OpenSSH hosts"
    base = "PostgreSQL" if options.postgres else "SQLite"
    rate = f"{written / options.seconds:.0f} lines a second"
    print(f"{options.runs} runs of 2 nodes over {where}, {options.seconds:.0f} s, {base}: {rate}")
    print(f"follower: {cost.share:.0%} of one processor, {cost.memory / 1e6:.0f} MB resident")
    print(f"lag: median {statistics.median(lags):.2f} s, 99th percentile {high:.2f} s, most {max(lags):.2f} s")
    lost = written - kept
    line, holds = figures.verdict("lag, 99th percentile", [high], GOAL, [load], unit="s", digits=2)
    print(f"lines written {written}, stored {kept}, lost {lost}; goal 0: {'holds' if lost == 0 else 'falls short'}")
    print(line)
    return 0 if holds and lost == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
