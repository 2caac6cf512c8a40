"""Take one making of an interpreter one step further. Any number of callers may do so at any time: one does."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import OperationalError
from django.utils import timezone

from training.spec.lint import Problem, Refused
from webapp import dispatch
from webapp.fleet.models import Provision
from webapp.fleet.ssh import SshError, Unreachable

from .. import lease
from . import steps

log = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
RETRY_FOR = timedelta(minutes=5)  # a node that can't be reached, from the last time it was heard of


def advance(provision_id: int) -> None:
    """Do the one step that its state asks for, unless another does it now."""
    found = Provision.objects.select_related("node__identity", "node__cluster").filter(pk=provision_id).first()
    if found is None:
        return
    with lease.hold(found) as held:
        if not held or found.has_ended:
            return
        seconds = _step(found)
    if seconds is not None and lease.due_in(found, seconds):
        dispatch.advance_provision(found.pk)


def _step(found: Provision) -> float | None:
    try:
        return steps.cancel(found) if found.cancel_asked_at else steps.step(found)
    except OperationalError:
        raise  # nothing is wrong with it, the sweep comes back
    except SshError as error:
        if isinstance(error, Unreachable) and timezone.now() < found.heard_at + RETRY_FOR:
            return RETRY_SECONDS
        problem = error.problem
    except Refused as refused:
        problem = refused.problems[0]
    except Exception as error:  # a bug of ours must not leave it without an end
        log.exception("%s", found)
        problem = Problem("service", f"an unexpected error of the service: {type(error).__name__}", "See its log.")
    steps.fail(found, problem)
    return None
