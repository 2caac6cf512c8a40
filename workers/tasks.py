"""Entry points for messages; each is one look."""

from __future__ import annotations

import logging

from celery.signals import heartbeat_sent, worker_ready
from django.db import DatabaseError, connection

from webapp import dispatch
from webapp.runs import heartbeat

from . import advance, leftovers, next_key, sweep
from .app import SWEEP, app
from .checkpoints import advance as checkpoints
from .nodejob import advance as nodejob
from .notices import sending, watching
from .preflight import demand, node
from .provision import advance as provision
from .provision import find

log = logging.getLogger(__name__)


@app.task(name=dispatch.ADVANCE_RUN)
def advance_run(run_id: int) -> None:
    advance.advance(run_id)


@app.task(name=dispatch.CLEAR_ATTEMPT)
def clear_attempt(attempt_id: int) -> None:
    advance.clear(attempt_id)


@app.task(name=dispatch.ADVANCE_JOB)
def advance_job(kind: str, job_id: int) -> None:
    nodejob.advance(kind, job_id)


@app.task(name=dispatch.ADVANCE_CHECKPOINT)
def advance_checkpoint(checkpoint_id: int) -> None:
    checkpoints.advance(checkpoint_id)


@app.task(name=dispatch.CHECK_NODE)
def check_node(node_id: int) -> None:
    node.check_node(node_id)


@app.task(name=dispatch.PREFLIGHT)
def preflight(preflight_id: int) -> None:
    demand.advance(preflight_id)


@app.task(name=dispatch.TRY_KEY)
def try_key(identity_id: int) -> None:
    next_key.try_key(identity_id)


@app.task(name=dispatch.FIND_PYTHONS)
def find_pythons(node_id: int) -> None:
    find.find_pythons(node_id)


@app.task(name=dispatch.ADVANCE_PROVISION)
def advance_provision(provision_id: int) -> None:
    provision.advance(provision_id)


@app.task(name=dispatch.LOOK_AT_NODE)
def look_at_node(node_id: int) -> None:
    leftovers.look(node_id)


@app.task(name=dispatch.END_LEFTOVER)
def end_leftover(leftover_id: int) -> None:
    leftovers.end(leftover_id)


@app.task(name=dispatch.WATCH_RUNS)
def watch_runs() -> None:
    watching.watch_runs()


@app.task(name=dispatch.SEND_NOTICES)
def send_notices() -> None:
    sending.send_due()


@app.task(name=SWEEP)
def sweep_all() -> None:
    sweep.sweep()


@heartbeat_sent.connect
def say_alive(**_: object) -> None:
    """The worker's main process says that it lives, also while every slot is at work."""
    heartbeat.beat("worker")


@worker_ready.connect
def look_soon(**_: object) -> None:
    """A lost look is no loss: the nodes are asked a few minutes later."""
    try:
        leftovers.look_soon()
    except DatabaseError as error:
        log.warning("nodes are asked a little later: %s", error)
    finally:
        connection.close()  # of the worker's first process: its children must not come by it
