"""What a delivery's lines mean for its row, and where the run's page shows it."""

from __future__ import annotations

from training.spec.events import Kind
from webapp.runs import jobkinds
from webapp.runs.counts import not_counts
from webapp.runs.readings import Told

from .models import Delivery

TEXTS = ("where", "url", "revision", "note")
FLAGS = ("already", "replaced")
LONGEST = 2000


def bad_delivered(event: Told) -> str:
    data = event.data
    for name in TEXTS:
        value = data.get(name, "")
        if not isinstance(value, str) or len(value) > LONGEST:
            return f"{name} is {value!r}"[:200]
    if wrong := [name for name in FLAGS if not isinstance(data.get(name, False), bool)]:
        return f"{wrong[0]} is {data[wrong[0]]!r}"[:200]
    if not isinstance(data.get("files"), list):
        return "files is no list"
    return not_counts(event, "bytes_sent", "bytes_skipped")


def _delivered(delivery_id: int, event: Told) -> None:
    names = (*TEXTS, *FLAGS, "files", "bytes_sent", "bytes_skipped")
    result = {name: event.data[name] for name in names if name in event.data}
    Delivery.objects.filter(pk=delivery_id).update(result=result)


def register() -> None:
    jobkinds.register(
        jobkinds.JobKind(
            Delivery,
            checks={Kind.DELIVERED: bad_delivered},
            handlers={Kind.DELIVERED: _delivered},
            parts=("exports",),
        )
    )
