"""Stops, wherever a run is: stopped means that nothing of it is left on any node."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.stack import until

from .case import Told, case
from .field import ENDED, Field
from .refused import silence

GROUP = "stops"


def _stop(field: Field, run: int, how: str = "graceful") -> Told:
    """Ask for a stop; wait until it is proven, and say how long that took."""
    asked = time.monotonic()
    field.stack.api("POST", f"/runs/{run}/stop", {"how": how})
    told = field.state(run, *ENDED)
    seconds = time.monotonic() - asked
    assert told["state"] == "stopped", f"{told['state']}: {told['reason_text']}"
    return Told(run, field.site.run(run), f"stopped: {told['reason']}", seconds)


@case(GROUP, "a stop while it waits in the queue")
def stopped_while_queued(field: Field) -> Told:
    field.training("has the nodes")
    run = field.order("waits")
    field.state(run, "queued")
    return _stop(field, run)


@case(GROUP, "a stop while it is prepared, with a node that does not answer")
def stopped_while_preparing(field: Field) -> Told:
    field.end_long()
    silence(field, field.hosts[1])
    run = field.order("is prepared")
    field.state(run, "preparing")
    return _stop(field, run)


@case(GROUP, "a stop while it starts, before the first step")
def stopped_while_starting(field: Field) -> Told:
    field.end_long()
    run = field.order("starts")
    field.state(run, "starting")
    return _stop(field, run)


@case(GROUP, "eight stops at once")
def stopped_twice(field: Field) -> Told:
    run = field.training("is stopped twice")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: field.stack.api("POST", f"/runs/{run}/stop"), range(7)))
    assert {answer["state"] for answer in answers} <= {"stopping", "stopped"}
    told = _stop(field, run) if field.told(run)["state"] == "stopping" else None
    moves = [move["new"] for move in field.told(run)["history"]]
    assert moves.count("stopping") == 1, moves
    assert told is None or told.ended == "stopped: stopped"
    return told or Told(run, field.site.run(run), "stopped: stopped")


@case(GROUP, "a stop, now, of a run with a rank under kill -STOP")
def stopped_now(field: Field) -> Told:
    run, host = field.training("is stopped now"), field.hosts[1]
    field.rank(run, host).send_signal(signal.SIGSTOP)
    told = _stop(field, run, "now")
    assert told.ended == "stopped: stopped_unsaved"
    return told


@case(GROUP, "a stop in the middle of a save")
def stopped_in_a_save(field: Field) -> Told:
    run = field.training("is stopped in a save", checkpoints={"every_steps": 3, "keep": 1})
    until("a save to begin", lambda: saving(field, run))
    told = _stop(field, run)
    seen = field.told(run)
    assert seen["step"] in [c["step"] for c in seen["checkpoints"] if c["usable"]], "what was done is saved"
    return told


def saving(field: Field, run: int) -> bool:
    """Return whether a checkpoint is being written: its folder is there, its marker, written last, is not."""
    folders = field.hosts[1].scratch.glob(f"runs/{run}/*/checkpoints/*checkpoint-*")
    return any(not (folder / "manifest-1.json").exists() for folder in folders)
