"""From a click on Stop to the proof that nothing is left: python -m tests.bench.stop

Starts the whole service and two OpenSSH hosts with addresses and disks of their own, trains on both, and stops each
run in the middle: in turns with a save and now. The time ends when the run is `stopped`, which it is once both hosts
have proven that no process is left, by the service's own record. Of a graceful stop the save is not counted: from the
line that says that rank 0 saves to the last rank's line that says that it is done; all else is, the step in hand, too.
After each stop the hosts are looked at from outside. Prints every round and both medians; status 1 where one exceeds
its goal. --rounds N, of each kind; --trace says where the time goes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.enlist import enlisted
from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack, until

from .figures import load, verdict

CLUSTER = "stopped"
GOAL = 10.0  # s, beside the save
WAYS = {"graceful": ("stopped",), "now": ("stopped", "stopped_unsaved")}  # a small save can be done within the grace
TOLD = ("state", "stop", "proof", "exit", "finished", "checkpoint")
MARK = "SHARDBOARD_JOB=/scratch/runs/{}/"


@dataclass
class Bench:
    stack: Stack
    hosts: list[SshHost]
    traced: bool
    loads: list[float] = field(default_factory=list)

    def round(self, how: str, number: int) -> float:
        """Return the seconds from the click to the proof, without those of the save."""
        run = self.training(f"{how} {number}")
        self.loads.append(load())
        clicked = time.time()
        self.stack.api("POST", f"/runs/{run}/stop", {"how": how})
        told = self.stack.wait_for_state(run, "stopped")
        stopped = seconds(told["history"][-1]["at"]) - clicked
        assert told["reason"] in WAYS[how], told["reason_text"]
        self.nothing_is_left(run, told)
        events = self.stack.api("GET", f"/runs/{run}/events?limit=5000")["items"]
        save = saving(events, clicked)
        if self.traced:
            trace(events, clicked)
        print(f"{how} {number}: {stopped:.2f} s, {save:.2f} s of these for the save", flush=True)
        return stopped - save

    def training(self, name: str) -> int:
        """Return a run in the middle of its training."""
        run = int(self.stack.api("POST", "/runs", {
            "name": name, "preset": "tiny", "model": "tiny-llama-5M", "dataset": "code-chat", "cluster": CLUSTER,
            "recipe": {"optimisation": {"max_steps": 100_000}, "limits": {"stop_seconds": 120}}, "launch": True,
        })["id"])  # fmt: skip
        until(f"run {run} to train", lambda: self.stack.run(run)["step"] >= 3, limit=600)
        return run

    def nothing_is_left(self, run: int, told: dict[str, Any]) -> None:
        """What the service calls proven is so: no process on any host carries the run's mark."""
        nodes = told["attempts"][-1]["nodes"]
        assert [node["proof"]["processes"] for node in nodes] == [[], []], nodes
        assert all(node["proven_gone_at"] for node in nodes), nodes
        for host in self.hosts:
            found = host.inside("sh", "-c", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' || true")
            assert MARK.format(run) not in found, f"{host.name}: something is left"


def saving(events: list[dict[str, Any]], since: float) -> float:
    """Return for how many seconds the ranks saved after `since`; 0 where they didn't."""
    after = [event for event in events if seconds(event["at"]) >= since]
    begun = [seconds(e["at"]) for e in after if e["kind"] == "phase" and e["data"].get("name") == "saving"]
    done = [seconds(e["at"]) for e in after if e["kind"] == "checkpoint"]
    return max(0.0, max(done) - min(begun)) if begun and done else 0.0


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def trace(events: list[dict[str, Any]], clicked: float) -> None:
    for event in sorted(events, key=lambda event: event["at"]):
        if event["kind"] in (*TOLD, "phase") and seconds(event["at"]) >= clicked:
            after = seconds(event["at"]) - clicked
            print(f"  {after:6.2f} s {event['source']} {event['kind']} {json.dumps(event['data'])[:100]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stop", description="From Stop to the proof.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trace", action="store_true", help="say where the time goes")
    parser.add_argument("--state", type=Path, help="state folder of the service, kept; default: a new one, removed")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shardboard-bench-")))
        service = Stack((options.state or folder / "state").resolve())
        stack.callback(service.stop)
        service.start()
        hosts = stack.enter_context(enlisted(service, CLUSTER, folder / "hosts"))
        bench = Bench(service, hosts, options.trace)
        took = {how: [bench.round(how, number) for number in range(1, options.rounds + 1)] for how in WAYS}
    names = {"graceful": "from Stop to the proof, beside the save", "now": "from End now to the proof"}
    verdicts = [verdict(names[how], took[how], GOAL, bench.loads, unit="s", digits=2) for how in WAYS]
    for line, _ in verdicts:
        print(line)
    return 0 if all(holds for _, holds in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
