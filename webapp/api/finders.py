"""Find what a request names, by name or id; Stop with 404, or Refused where a body names what is not there."""

from __future__ import annotations

from typing import Annotated, TypeVar, cast

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from ninja import Field
from pydantic import StrictInt, StrictStr

from training.spec.lint import Problem, Refused
from webapp.datasets.models import Dataset, Version
from webapp.keys import key_of
from webapp.runs.models import Checkpoint, Run

from .problems import Stop

Ref = Annotated[StrictInt | Annotated[StrictStr, Field(min_length=1, max_length=200)], Field(description="Name or id.")]
M = TypeVar("M", bound=Model)
WHERE = {
    "export": "GET the run shows its exports.",
    "checkpoint": "GET the run shows its checkpoints.",
    "trial": "GET the run's trials shows what there is.",
    "delivery": "GET the export's deliveries shows what there is.",
}


def by_id(rows: QuerySet[M], key: int, what: str) -> M:
    """Return the row of an address."""
    found = rows.filter(pk=key).first()
    if found is None:
        fix = WHERE.get(
            what, f"GET the list of {what[:-1] + 'ie' if what.endswith('y') else what}s shows what there is."
        )
        raise Stop(404, "id", f"there is no {what} {str(key)[:30]}", fix)
    return found


def run_of(key: int) -> Run:
    return by_id(Run.objects.select_related("model", "dataset__dataset", "cluster", "owner"), key, "run")


def named(rows: QuerySet[M], ref: int | str, field: str) -> M:
    """Return the row that a body's `field` names."""
    found = rows.filter(pk=ref).first() if isinstance(ref, int) else rows.filter(name=ref).first()
    if found is None and isinstance(ref, str):
        found = rows.filter(pk=key_of(ref)).first()
    if found is None:
        known = ", ".join(str(row) for row in rows[:10]) or "none yet"
        raise Refused([Problem(field, f"there is none called {str(ref)[:100]!r}", f"Known: {known}.")])
    return found


def version_named(ref: int | str) -> Version:
    """Return the newest version of the data set that is named; `name@2` is its second."""
    name, at, number = ref.rpartition("@") if isinstance(ref, str) else ("", "", "")
    if at and (wanted := key_of(number)) and not Dataset.objects.filter(name=ref).exists():
        dataset = named(Dataset.objects.all(), name, "dataset")
        found = dataset.versions.filter(number=wanted).first()
    else:
        dataset = named(Dataset.objects.all(), ref, "dataset")
        found = dataset.latest
    if found is None:
        raise Refused([Problem("dataset", f"{dataset.name} has no such version", "Upload it, or leave out `@`.")])
    return found


def checkpoint_of(run: Run, ref: int | None) -> Checkpoint | None:
    """Return the run's checkpoint at step `ref`, of the newest attempt that has one, else the one with that id."""
    if ref is None:
        return None
    rows = Checkpoint.objects.filter(attempt__run=run).select_related("attempt")
    at_step = rows.filter(step=ref).order_by("-attempt__number")
    found = at_step.usable().first() or at_step.first()
    found = found or rows.filter(pk=ref).first()
    if found is None:
        steps = ", ".join(str(row.step) for row in rows.filter(deleted_at=None)[:20]) or "none yet"
        raise Refused([Problem("checkpoint", f"the run has none at step {str(ref)[:30]}", f"Steps: {steps}.")])
    return found


def user_of(request: HttpRequest) -> User:
    """Return who asks: Access has let nobody else through."""
    return cast(User, request.user)


def staff_of(request: HttpRequest, act: str) -> str:
    """Return who asks, of staff; Stop with 403 where it is somebody else. `act`: what only staff may."""
    if not user_of(request).is_staff:
        raise Stop(403, "user", f"only staff accounts may {act}", "Ask an administrator.")
    return actor_of(request)


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()
