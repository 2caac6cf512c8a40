"""From a click to rank 0's first line, beside the same commands typed by hand: python -m tests.bench.launch

Starts the whole service and two OpenSSH hosts with addresses and disks of their own, and takes turns: a run is asked
for over HTTP, as its page does; then the very files of that launch, copied to a new folder beforehand, are started by
two `ssh` commands at once, as a person's script would. In both the time ends with the first line that rank 0 writes,
by the time in that line: its host has this machine's clock. Prints every round and the median of what the service
takes longer; status 1 where that exceeds its goal. --rounds N, --trace says where the service's time goes, --light has
the writer of bench-latency for ranks, which begins at once: torch takes many times as long, and never the same.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.enlist import enlist, enlisted
from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack, until
from training.spec.ports import free_port

from . import place
from .figures import load, verdict
from .writer import GO

CLUSTER = "launched"
GOAL = 2.0  # s more than by hand
KNOWN = ".hosts"  # behind the name of the person's key: the keys of the hosts
TOLD = ("state", "phase", "started")  # what a trace shows
KEY_OPTIONS = ("-o", "BatchMode=yes", "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
               "-o", "LogLevel=ERROR")  # fmt: skip


@dataclass
class Bench:
    """What both ways share. `key`: private key of the person who types, known to the hosts beside the service's."""

    stack: Stack
    hosts: list[SshHost]
    key: Path
    traced: bool
    python: str
    light: bool
    loads: list[float] = field(default_factory=list)

    def round(self, number: int) -> float:
        """Return how many seconds the service takes longer than the person."""
        self.loads.append(load())
        run, clicked = self.by_service(number)
        typed = self.by_hand(run, number)
        print(f"round {number}: by the service {clicked:.2f} s, by hand {typed:.2f} s, {clicked - typed:+.2f} s",
              flush=True)  # fmt: skip
        return clicked - typed

    def by_service(self, number: int) -> tuple[int, float]:
        """Return the run, and the seconds from the click to rank 0's first line."""
        began = time.time()
        run = int(self.stack.api("POST", "/runs", {
            "name": f"launch {number}", "preset": "tiny", "model": "tiny-llama-5M", "dataset": "code-chat",
            "cluster": CLUSTER, "recipe": {"optimisation": {"max_steps": 1}}, "launch": True,
        })["id"])  # fmt: skip
        self._go(folder_of(run, 0))
        self.stack.wait_for_state(run, "succeeded")
        if self.traced:
            self._trace(run, began)
        return run, self.first_line(folder_of(run, 0)) - began

    def by_hand(self, run: int, number: int) -> float:
        """Return the seconds from the commands to rank 0's first line, with everything copied beforehand."""
        port = str(free_port("127.0.0.1"))
        commands = [self._copied(run, rank, number, port) for rank in range(len(self.hosts))]
        began = time.time()
        typed = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
        assert [one.wait() for one in typed] == [0] * len(typed)
        self._go(by_hand(number, 0))
        for rank in range(len(self.hosts)):
            until("the job to end", lambda rank=rank: self._ended(by_hand(number, rank), rank))
        return self.first_line(by_hand(number, 0)) - began

    def _go(self, folder: str) -> None:
        """Let the writers write, where they are the ranks: on every host."""
        for rank, host in enumerate(self.hosts) if self.light else ():
            own = folder.removesuffix("0") + str(rank)
            until("the job's folder", lambda own=own, host=host: host.inside("sh", "-c", f"ls -d {own} || true"))
            host.inside("touch", f"{own}/{GO}")

    def first_line(self, folder: str) -> float:
        """Return when rank 0 wrote its first line, in seconds since the epoch."""
        lines = self.hosts[0].inside("cat", f"{folder}/events.jsonl").splitlines()
        return float(next(line["at"] for line in map(json.loads, lines) if _of_rank(line)))

    def _copied(self, run: int, rank: int, number: int, port: str) -> list[str]:
        """Copy the files of the run's launch to a folder of their own; return the command that starts them."""
        host, source, target = self.hosts[rank], folder_of(run, rank), by_hand(number, rank)
        script = (
            'mkdir -p "$2" && cp "$1"/job.json "$1"/recipe.json "$1"/accelerate.yaml "$1"/env "$2"/ && '
            'sed -i "s|$3|$4|g" "$2"/job.json "$2"/recipe.json "$2"/accelerate.yaml && '
            'sed -i "s|^main_process_port: .*|main_process_port: $5|" "$2"/accelerate.yaml'
        )
        before, after = str(Path(source).parent), str(Path(target).parent)
        host.inside("sh", "-c", script, "copy", source, target, before, after, port)
        known = ("-o", f"UserKnownHostsFile={self.key.with_suffix(KNOWN)}")
        where = f"root@{host.address}"
        return ["ssh", "-i", str(self.key), *KEY_OPTIONS, *known, where, self._start_command(rank, target)]

    def _start_command(self, rank: int, folder: str) -> str:
        """Return what the service runs on a node, too."""
        found = self.hosts[rank].inside("sh", "-c", "ls /scratch/releases/*/training/start.py")
        path = f"PYTHONPATH={Path(found.strip()).parents[1]}"
        return shlex.join(["env", path, self.python, "-m", "training", "start", folder])

    def _ended(self, folder: str, rank: int) -> bool:
        done = self.hosts[rank].inside("sh", "-c", f"test -s {folder}/exit.json && cat {folder}/exit.json || true")
        if not done:
            return False
        assert json.loads(done)["reason"] == "completed", done
        return True

    def _trace(self, run: int, began: float) -> None:
        events = self.stack.api("GET", f"/runs/{run}/events?limit=5000")["items"]
        told = [event for event in events if event["kind"] in TOLD]
        for event in sorted(told, key=lambda event: event["at"]):
            after = datetime.fromisoformat(event["at"]).timestamp() - began
            print(f"  {after:6.2f} s {event['source']} {event['kind']} {json.dumps(event['data'])[:100]}", flush=True)


def _of_rank(line: dict[str, Any]) -> bool:
    """Tell the first line of a rank from those that making the tokens wrote before."""
    return line["kind"] == "started" or line["data"].get("name") == "loading"


def folder_of(run: int, rank: int) -> str:
    return f"/scratch/runs/{run}/1/node{rank}"


def by_hand(number: int, rank: int) -> str:
    return f"/scratch/runs/hand-{number}/1/node{rank}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.launch", description="A launch beside one by hand.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trace", action="store_true", help="say where the service's time goes")
    parser.add_argument("--light", action="store_true", help="ranks that begin at once")
    parser.add_argument("--state", type=Path, help="state folder of the service, kept; default: a new one, removed")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shardboard-bench-")))
        bench = _started(stack, folder, options)
        bench.round(0)  # the release, the data and the tokens are put and made; files are read into memory
        longer = [bench.round(number) for number in range(1, options.rounds + 1)]
    name = "from click to rank 0's first line, more than by hand"
    line, holds = verdict(name, longer, GOAL, bench.loads, unit="s", digits=2)
    print(line)
    return 0 if holds else 1


def _started(stack: ExitStack, folder: Path, options: argparse.Namespace) -> Bench:
    service = Stack((options.state or folder / "state").resolve())
    stack.callback(service.stop)
    service.start()
    hosts = stack.enter_context(enlisted(service, CLUSTER, folder / "hosts"))
    key = folder / "typed"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with (folder / "hosts" / "authorized_keys").open("a") as known:
        known.write(key.with_suffix(".pub").read_text())
    key.with_suffix(KNOWN).write_text("".join(f"{host.address} {host.host_key}\n" for host in hosts))
    python = place.launcher(folder) if options.light else sys.executable
    for host in hosts:
        enlist(service, CLUSTER, host, python=str(python))
    return Bench(service, hosts, key, options.trace, str(python), options.light)


if __name__ == "__main__":
    sys.exit(main())
