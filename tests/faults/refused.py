"""What is wrong before anything trains: the launch is refused with node, reason and a way out, and nothing is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from tests.e2e.enlist import enlist
from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import until

from .case import Told, case
from .field import ENDED, Field, sshd
from .python import ahead, other_version, without

GROUP = "before it trains"


def _refused(field: Field, run: int, *words: str, reasons: tuple[str, ...], limit: float = 480) -> Told:
    """Wait for the end; no step was done, and the page says `words`."""
    seconds = field.noticed("the launch to be refused", lambda: field.told(run)["state"] in ENDED, limit)
    told, seen = field.told(run), field.site.run(run)
    assert (told["state"], told["step"]) == ("failed", 0), told["state"]
    assert told["reason"] in reasons, f"{told['reason']}: {told['reason_text']}"
    for word in words:
        assert word.lower() in seen.lower(), f"{word!r} is not in {seen!r}"
    return Told(run, seen, f"failed: {told['reason']}", seconds)


def _changed(field: Field, host: SshHost, **changes: str) -> None:
    """Describe the node otherwise for this case."""
    enlist(field.stack, field.cluster, host, **changes)
    field.undo.append(lambda: enlist(field.stack, field.cluster, host))


def _with_python(field: Field, name: str, python: Path | str, *words: str) -> Told:
    field.end_long()
    host = field.hosts[1]
    _changed(field, host, python=str(python))
    return _refused(field, field.order(name, steps=4), host.name, *words, reasons=("preflight",))


@case(GROUP, "the interpreter's path is wrong on one node")
def wrong_interpreter(field: Field) -> Told:
    return _with_python(field, "no python", "/opt/nowhere/bin/python", "/opt/nowhere/bin/python")


@case(GROUP, "`trl` is missing on one node")
def package_missing(field: Field) -> Told:
    python = without(field.hosts[1].scratch, "trl")
    return _with_python(field, "no trl", python, "trl")


@case(GROUP, "another version of `transformers` on one node")
def version_differs(field: Field) -> Told:
    python = other_version(field.hosts[1].scratch, "transformers", "4.40.0")
    return _with_python(field, "old transformers", python, "transformers", "4.40.0")


@case(GROUP, "the host key of a node has changed")
def host_key_changed(field: Field) -> Told:
    field.end_long()
    host = field.hosts[1]
    host.new_key()
    field.undo.append(lambda: enlist(field.stack, field.cluster, host))
    until("sshd to be back", lambda: sshd(host))
    return _refused(field, field.order("another key"), host.name, "SHA256:", reasons=("host_key_changed",))


@case(GROUP, "a node that takes the connection and then says nothing (sshd under kill -STOP)")
def node_hangs_at_connect(field: Field) -> Told:
    field.end_long()
    host = field.hosts[1]
    silence(field, host)
    return _refused(field, field.order("a silent node"), host.name, reasons=("node_unreachable",))


def silence(field: Field, host: SshHost) -> None:
    """Let the kernel take connections to the host, and nobody say anything."""
    for process in sshd(host):
        process.send_signal(signal.SIGSTOP)
    field.undo.append(host.end_sshd)


@case(GROUP, "the scratch folder is read-only on one node")
def scratch_read_only(field: Field) -> Told:
    field.end_long()
    host = field.hosts[1]
    host.inside("mount", "-o", "remount,bind,ro", "/scratch")
    field.undo.append(lambda: host.inside("mount", "-o", "remount,bind,rw", "/scratch"))
    return _refused(field, field.order("read-only"), host.name, reasons=("preflight",))


@case(GROUP, "the interface that is set does not exist on one node")
def wrong_interface(field: Field) -> Told:
    field.end_long()
    host = field.hosts[1]
    _changed(field, host, interface="eth7")
    run = field.order("no such interface", steps=4)
    return _refused(field, run, host.name, "eth7", reasons=("preflight", "configuration"))


@case(GROUP, "the data set's files are gone from the service")
def data_set_gone(field: Field) -> Told:
    field.end_long()
    for path in list((field.stack.state / "datasets").rglob("*.jsonl")):
        path.rename(path.with_suffix(".away"))
        field.undo.append(lambda path=path: path.with_suffix(".away").rename(path))
    return _refused(field, field.order("no data"), reasons=("data",))


TAKE = """
import socket, sys, time
taken = socket.socket()
taken.bind(("0.0.0.0", int(sys.argv[1])))
taken.listen()
time.sleep(600)
"""


@case(GROUP, "the rendezvous port is taken by another program between its choice and its use")
def port_taken(field: Field) -> Told:
    field.end_long()
    host = field.hosts[0]
    run = field.order("a port is taken", steps=4)
    port = until("the port to be chosen", lambda: _port(field, run, host))
    inside = ["nsenter", f"--net=/run/netns/{host.namespace}", sys.executable, "-c", TAKE, str(port)]
    other = subprocess.Popen(inside)
    field.undo.append(other.kill)
    told = field.state(run, *ENDED)
    assert other.poll() is None, "the port could not be taken in time"
    assert told["state"] == "succeeded" or str(port) in told["reason_text"], told["reason_text"]
    return Told(run, field.site.run(run), f"{told['state']}: {told['reason']}")


def _port(field: Field, run: int, host: SshHost) -> int:
    for path in host.scratch.glob(f"runs/{run}/1/node0/accelerate.yaml"):
        for line in path.read_text().splitlines():
            if line.startswith("main_process_port"):
                return int(line.split(":")[1])
    return 0


@case("links and nodes, for a while", "one node's clock is 90 s ahead (N10)")
def clock_ahead(field: Field) -> Told:
    field.end_long()
    host = field.hosts[1]
    _changed(field, host, python=str(ahead(host.scratch, 90)))
    run = field.order("a clock is ahead", steps=6)
    told = field.state(run, "succeeded")
    took = _seconds(told["ended_at"]) - _seconds(told["started_at"])
    assert 0 < took < 80, took
    events = [e for e in field.stack.api("GET", f"/runs/{run}/events?limit=1000")["items"] if e["source"] == "train@0"]
    assert [e["source_seq"] for e in events] == sorted(e["source_seq"] for e in events)
    return Told(run, f"{field.site.run(run)}; it took {took:.0f} s", f"{told['state']}: {told['reason']}")


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
