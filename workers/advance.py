"""Take one run one step further. Any number of callers may do so at any time: one of them does."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db import OperationalError
from django.utils import timezone

from training.spec.faults import Reason
from webapp import dispatch
from webapp.fleet.ssh import SshError, Unreachable
from webapp.runs.models import Attempt, Run
from webapp.runs.states import ENDED, RunState

from . import lease
from .end import finish
from .end.ending import End
from .end.stop import stop
from .end.watch import watch
from .launch.claim import claim
from .launch.prepare import prepare
from .launch.start import start

log = logging.getLogger(__name__)
# Each returns in how many seconds to look again; None: it has ended.
STEPS: dict[str, Callable[[Run, Attempt], float | None]] = {
    RunState.QUEUED: claim,
    RunState.PREPARING: prepare,
    RunState.STARTING: start,
    RunState.RUNNING: watch,
    RunState.STOPPING: stop,
}
LAUNCHING = frozenset({RunState.PREPARING, RunState.STARTING})
RETRY_SECONDS = 5.0
CLEAR_SECONDS = 60.0
RETRY_FOR = timedelta(seconds=60)  # a node that can't be reached while its run is being launched


def advance(run_id: int) -> None:
    """Do the one step that the run's state asks for, unless another does it now."""
    run = Run.objects.filter(pk=run_id).first()
    attempt = run.attempt if run else None
    if run is None or attempt is None:
        return
    with lease.hold(attempt) as held:
        if not held:
            return
        run.refresh_from_db()
        if run.attempt != attempt:  # it was stopped and begun again since we read it: that attempt has its own lease
            dispatch.advance_run(run_id)
            return
        seconds = _step(run, attempt)
    if seconds is not None and lease.due_in(attempt, seconds):
        dispatch.advance_run(run_id)


def _step(run: Run, attempt: Attempt) -> float | None:
    if run.state in ENDED:
        return _clear(attempt)
    state = run.state
    try:
        seconds = STEPS[state](run, attempt)
        _reached(attempt)
        return seconds
    except OperationalError:
        raise  # the database is away or busy: nothing is wrong with the run, the sweep comes back
    except SshError as error:
        if isinstance(error, Unreachable) and not (state in LAUNCHING and _away_too_long(attempt)):
            return RETRY_SECONDS
        end = End(error.reason, str(error), error.node)
    except End as error:
        end = error
    except Exception as error:  # a bug of ours must not leave claims or processes behind
        log.exception("run %s: %s", run.pk, state)
        end = End(Reason.LAUNCH, f"an unexpected error of the service while {state}: {type(error).__name__}: {error}")
    run.refresh_from_db()
    return _fail(run, attempt, end)


def clear(attempt_id: int) -> None:
    """Look after what an ended attempt left, also while a newer one of its run is at work on other nodes."""
    attempt = Attempt.objects.filter(pk=attempt_id).first()
    if attempt is None:
        return
    with lease.hold(attempt) as held:
        seconds = _clear(attempt) if held else None
    if seconds is not None:
        lease.due_in(attempt, seconds)


def _clear(attempt: Attempt) -> float | None:
    """Look after nodes that could not be reached when the attempt ended."""
    left = finish.to_clear(timezone.now()).filter(pk=attempt.pk)
    if left.exists():
        finish.clear(attempt)
    return CLEAR_SECONDS if left.exists() else None


def _fail(run: Run, attempt: Attempt, end: End) -> float | None:
    if run.state == RunState.STOPPING:  # a stop came meanwhile: it ends what there is
        return stop(run, attempt)
    if run.state not in ENDED and run.attempt == attempt:
        finish.fail(run, attempt, end.reason, end.text, end.node)
    return None


def _reached(attempt: Attempt) -> None:
    if attempt.unreachable_since:
        attempt.unreachable_since = None
        attempt.save(update_fields=["unreachable_since"])


def _away_too_long(attempt: Attempt) -> bool:
    """Counted from the first step that failed so: it may have copied for hours before its link went for seconds."""
    if attempt.unreachable_since is None:
        attempt.unreachable_since = timezone.now()
        attempt.save(update_fields=["unreachable_since"])
    return timezone.now() > attempt.unreachable_since + RETRY_FOR
