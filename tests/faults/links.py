"""Links and SSH that fail for a while: training goes on, the view catches up."""

from __future__ import annotations

import signal
import time

from tests.e2e.stack import until

from .case import Told, case
from .field import Field
from .service import TRAINS
from .slowlink import slow

GROUP = "links and nodes, for a while"


@case(GROUP, "kill -9 of sshd and of all its sessions on a node")
def sshd_killed(field: Field) -> Told:
    run, host = field.long(), field.hosts[1]
    before = samples(field, run)
    began = time.monotonic()
    host.end_sshd()
    until("samples of that node", lambda: samples(field, run) > before + 2)
    back = time.monotonic() - began
    field.goes_on(run)
    return Told(run, f"{field.site.run(run)}; that node's figures went on after {back:.1f} s", TRAINS, back)


def samples(field: Field, run: int, rank: int = 1) -> int:
    """Return the number of the last sample of a node that the service has."""
    series = field.stack.api("GET", f"/runs/{run}/series/node{rank}/cpu?points=1500")
    return len(series["steps"])


@case(GROUP, "a node's link down for 5 s, with training's own traffic on it")
def link_down_for_a_moment(field: Field) -> Told:
    run, host = field.long(), field.hosts[1]
    host.cut()
    field.undo.append(host.mend)
    time.sleep(5)  # what the case is about
    host.mend()
    began = time.monotonic()
    field.goes_on(run)
    return Told(run, f"{field.site.run(run)}; steps went on {time.monotonic() - began:.1f} s after the link", TRAINS)


@case(GROUP, "a node's link at 200 ms there and back, 5% of all frames lost, training's own traffic as well")
def link_slow(field: Field) -> Told:
    run, host = field.long(), field.hosts[1]
    with slow(host, 0.1, 0.05):
        began = time.monotonic()
        field.goes_on(run, 2)
        took = time.monotonic() - began
        seen = field.site.run(run)
    field.goes_on(run)
    return Told(run, f"{seen}; two steps took {took:.0f} s", TRAINS)


@case(GROUP, "kill -STOP of a rank, then CONT when the page has told of it")
def rank_paused(field: Field) -> Told:
    run = field.long()
    rank = field.rank(run, field.hosts[1])
    rank.send_signal(signal.SIGSTOP)
    field.undo.append(rank.resume)
    seconds = field.noticed("the page to tell of it", lambda: "stopped by a signal" in field.site.run(run))
    stood, seen = field.told(run)["step"], field.site.run(run)
    rank.send_signal(signal.SIGCONT)
    field.reached(run, stood + 2)
    return Told(run, seen, TRAINS, seconds)


@case("stops", "a stop while it trains")
def stopped_while_running(field: Field) -> Told:
    run = field.long()
    began = time.monotonic()
    field.end_long()
    told = field.told(run)
    assert (told["state"], told["reason"], len(told["attempts"])) == ("stopped", "stopped", 1)
    assert told["step"] in [c["step"] for c in told["checkpoints"] if c["usable"]]
    return Told(run, field.site.run(run), "stopped: stopped", time.monotonic() - began)
