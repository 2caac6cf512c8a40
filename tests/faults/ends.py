"""Faults that end a run: the first failing rank and node are named, and nothing is left on any node."""

from __future__ import annotations

import signal

import psutil

from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import until

from .case import Told, case
from .field import Field
from .memory import MemoryLimit

GROUP = "what ends a run"


def _failed(field: Field, run: int, *words: str, reasons: tuple[str, ...], limit: float = 480) -> Told:
    """Wait for the end; the page has to say `words`, the reason has to be one of `reasons`."""
    seconds = field.noticed("the run to fail", lambda: field.told(run)["state"] == "failed", limit)
    told, seen = field.told(run), field.site.run(run)
    assert told["reason"] in reasons, f"{told['reason']}: {told['reason_text']}"
    for word in words:
        assert word.lower() in seen.lower(), f"{word!r} is not in {seen!r}"
    return Told(run, seen, f"failed: {told['reason']}", seconds)


@case(GROUP, "kill -9 of a rank")
def rank_killed(field: Field) -> Told:
    run, host = field.training("a rank is killed"), field.hosts[1]
    field.rank(run, host).kill()
    return _failed(field, run, host.name, "signal 9", reasons=("killed_by_host",))


@case(GROUP, "kill -9 of `accelerate launch` on one node")
def launcher_killed(field: Field) -> Told:
    run, host = field.training("accelerate is killed"), field.hosts[1]
    field.accelerate(run, host).kill()
    return _failed(field, run, host.name, reasons=("killed_by_host",))


@case(GROUP, "kill -9 of a supervisor")
def supervisor_killed(field: Field) -> Told:
    run, host = field.training("a supervisor is killed"), field.hosts[1]
    field.supervisor(run, host).kill()
    return _failed(field, run, host.name, reasons=("supervisor_lost",))


@case(GROUP, "kill -STOP of a rank on node 2, then kill -9 of its `accelerate launch` (N4)")
def stopped_then_killed(field: Field) -> Told:
    run, host = field.training("stopped, then killed"), field.hosts[1]
    field.rank(run, host).send_signal(signal.SIGSTOP)
    field.accelerate(run, host).kill()
    return _failed(field, run, host.name, reasons=("killed_by_host",))


@case(GROUP, "a rank that hangs for good (kill -STOP); hang_seconds and hang_end_seconds are 10")
def rank_hangs(field: Field) -> Told:
    limits = {"hang_seconds": 10, "hang_end_seconds": 10, "stop_seconds": 60}
    run, host = field.training("a rank hangs", limits=limits), field.hosts[1]
    field.rank(run, host).send_signal(signal.SIGSTOP)
    return _failed(field, run, host.name, reasons=("hang",))


@case(GROUP, "a disk that is full in the middle of a save")
def disk_full(field: Field) -> Told:
    run, host = field.training("the disk is full", checkpoints={"every_steps": 4}), field.hosts[1]
    _fill(field, host)
    return _failed(field, run, host.name, reasons=("disk_full",))


def _fill(field: Field, host: SshHost) -> None:
    """Leave a few MB on the host's disk: its lines still fit, a checkpoint does not."""
    path = host.scratch / "filler"
    field.undo.append(lambda: path.unlink(missing_ok=True))
    free = psutil.disk_usage(str(host.scratch)).free
    with path.open("wb") as file:
        while free > (8 << 20):
            file.write(b"\0" * (4 << 20))
            file.flush()
            free = psutil.disk_usage(str(host.scratch)).free


@case(GROUP, "a node out of memory: a memory limit around a rank, below what it takes")
def out_of_memory(field: Field) -> Told:
    run, host = field.training("out of memory"), field.hosts[1]
    group = MemoryLimit(f"shardboard-{host.namespace}")
    field.undo.append(group.remove)
    group.squeeze(field.rank(run, host))
    return _failed(field, run, host.name, "memory", reasons=("killed_by_host",))


@case(GROUP, "a node that loses its power and starts anew")
def rebooted(field: Field) -> Told:
    run, host = field.training("a node starts anew"), field.hosts[1]
    host.off()
    host.on()
    return _failed(field, run, host.name, reasons=("node_lost", "supervisor_lost"))


@case(GROUP, "two at once: kill -9 of the worker and of a rank")
def two_at_once(field: Field) -> Told:
    run, host = field.training("two faults at once"), field.hosts[1]
    field.stack.kill("worker")
    field.rank(run, host).kill()
    told = _failed(field, run, host.name, "signal 9", reasons=("killed_by_host",))
    until("the service to be healthy", field.stack.healthy)
    return told


@case(GROUP, "a node's link down for good; lost_seconds is 30")
def link_down(field: Field) -> Told:
    limits = {"lost_seconds": 30, "stop_seconds": 60}
    run, host = field.training("the link is gone", limits=limits), field.hosts[1]
    host.cut()
    field.undo.append(host.mend)
    seconds = field.noticed("the page to say so", lambda: "stopped answering" in field.site.run(run))
    seen = field.site.run(run)
    told = field.state(run, "failed", limit=400)
    assert told["reason"] == "node_lost", f"{told['reason']}: {told['reason_text']}"
    assert host.name in told["reason_text"]
    host.mend()
    until("nothing to be left on the node", lambda: not field.of(run, host))
    return Told(run, f"{seen} / then: {field.site.run(run)}", f"failed: {told['reason']}", seconds)
