"""The one place that sends work to the Celery workers: by name, on commit, never with facts in it.

A send that fails is no loss: the sweep finds every row that is due and sends again.
"""

from __future__ import annotations

import logging
from functools import cache

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

ADVANCE_RUN = "workers.advance_run"
CLEAR_ATTEMPT = "workers.clear_attempt"  # sent by the sweep alone
ADVANCE_JOB = "workers.advance_job"
ADVANCE_CHECKPOINT = "workers.advance_checkpoint"
CHECK_NODE = "workers.check_node"
TRY_KEY = "workers.try_key"
PREFLIGHT = "workers.preflight"
FIND_PYTHONS = "workers.find_pythons"
ADVANCE_PROVISION = "workers.advance_provision"

LOOK_AT_NODE = "workers.look_at_node"
END_LEFTOVER = "workers.end_leftover"
WATCH_RUNS = "workers.watch_runs"  # sent by the sweep alone
SEND_NOTICES = "workers.send_notices"


def advance_run(run_id: int) -> None:
    _on_commit(ADVANCE_RUN, run_id)


def advance_job(kind: str, job_id: int) -> None:
    """Look at a job of one node (webapp.runs.jobkinds)."""
    _on_commit(ADVANCE_JOB, kind, job_id)


def advance_checkpoint(checkpoint_id: int) -> None:
    _on_commit(ADVANCE_CHECKPOINT, checkpoint_id)


def check_node(node_id: int) -> None:
    _on_commit(CHECK_NODE, node_id)


def try_key(identity_id: int) -> None:
    """Try an identity's next key on its nodes."""
    _on_commit(TRY_KEY, identity_id)


def preflight(preflight_id: int) -> None:
    _on_commit(PREFLIGHT, preflight_id)


def find_pythons(node_id: int) -> None:
    _on_commit(FIND_PYTHONS, node_id)


def advance_provision(provision_id: int) -> None:
    _on_commit(ADVANCE_PROVISION, provision_id)


def look_at_node(node_id: int) -> None:
    """Ask a node what runs there."""
    _on_commit(LOOK_AT_NODE, node_id)


def end_leftover(leftover_id: int) -> None:
    _on_commit(END_LEFTOVER, leftover_id)


def send_notices() -> None:
    """Send what is to be sent of notices."""
    _on_commit(SEND_NOTICES)


def _on_commit(name: str, *key: str | int) -> None:
    transaction.on_commit(lambda: send(name, *key))


def send(name: str, *key: str | int) -> None:
    try:
        _producer().send_task(name, args=list(key), retry=False)
    except (OperationalError, OSError) as error:
        log.warning("%s%s not sent, the sweep will: %s", name, key, error)


@cache
def _producer() -> Celery:
    app = Celery("shardboard", broker=settings.REDIS_URL, set_as_current=False)
    # One try: whoever sends also writes rows or answers a page, and must not wait for a broker that is away.
    once = {"max_retries": 0, "interval_start": 0, "interval_step": 0, "interval_max": 0}
    app.conf.broker_transport_options = {"socket_connect_timeout": 2, "socket_timeout": 5} | once
    app.conf.task_ignore_result = True
    return app
