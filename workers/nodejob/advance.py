"""Take one job of one node one step further. Any number of callers may do so at any time: one of them does."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError
from django.utils import timezone

from training.spec.faults import Reason
from webapp import dispatch
from webapp.fleet.ssh import SshError, Unreachable
from webapp.runs import sources
from webapp.runs.models import NodeJob

from .. import lease
from ..end.ending import End
from ..end.heard import heard as last_heard
from .kinds import WORKS
from .work import Work

log = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
RETRY_FOR = timedelta(minutes=5)  # a node that can't be reached, from the last sign of life on


def advance(kind: str, job_id: int) -> None:
    """Do the one step that the job's state asks for, unless another does it now."""
    work = WORKS[kind]
    job = work.model._default_manager.filter(pk=job_id).first()
    if job is None:
        return
    with lease.hold(job) as held:
        if not held or job.has_ended:
            return
        seconds = _step(work, job)
    if seconds is not None and lease.due_in(job, seconds):
        dispatch.advance_job(kind, job_id)


def _step(work: Work[Any], job: NodeJob) -> float | None:
    state = job.state
    try:
        return work.cancel(job) if job.cancel_asked_at else work.step(job)
    except OperationalError:
        raise  # nothing is wrong with the job, the sweep comes back
    except SshError as error:
        if isinstance(error, Unreachable) and timezone.now() < _last_sign(job) + RETRY_FOR:
            return RETRY_SECONDS
        end = End(error.reason, str(error))
    except End as error:
        end = error
    except Exception as error:  # a bug of ours must not leave the job without an end
        log.exception("%s: %s", job, state)
        end = End(Reason.LAUNCH, f"an unexpected error of the service: {type(error).__name__}: {error}")
    job.refresh_from_db()
    work.fail(job, end.reason, end.text)
    return None


def _last_sign(job: NodeJob) -> datetime:
    names = (sources.node(job.KIND, job.pk), sources.events(job.KIND, job.pk))
    heard = (last_heard(job.attempt, name) for name in names)
    return max(filter(None, (job.asked_at, job.cancel_asked_at, *heard)))
