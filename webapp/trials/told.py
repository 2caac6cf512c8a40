"""What a trial's lines mean for its rows. Runs inside the journal's transaction, which has locked the run."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Value
from django.db.models.functions import Concat

from training.spec.answer import CHARACTERS, TOKENS
from training.spec.events import Kind
from webapp.runs import jobkinds, page
from webapp.runs.counts import SMALL_INT, not_counts
from webapp.runs.models import Export
from webapp.runs.readings import Told

from . import actions, fixed
from .models import Answer, Trial

ENDS = ("eos", "tokens", "time", "stop")
FIGURES = ("seconds", "tokens_per_second", "first_token_seconds")
LARGEST = 1e9
OF_MODEL = ("state", "device", "why", "dtype", "bytes", "seconds")


def bad_model(event: Told) -> str:
    if event.data.get("state") not in ("loading", "ready"):
        return f"state is {event.data.get('state')!r}"[:200]
    odd = [name for name in OF_MODEL if not isinstance(event.data.get(name, ""), str | int | float)]
    return f"{odd[0]} is neither text nor number" if odd else not_counts(event, "model", most=SMALL_INT)


def bad_token(event: Told) -> str:
    return _bad_text(event) or _bad_place(event)


def bad_answer(event: Told) -> str:
    if event.data.get("stopped_by") not in ENDS:
        return f"stopped_by is {event.data.get('stopped_by')!r}"[:200]
    odd = [name for name in FIGURES if not _is_figure(event.data.get(name))]
    return f"{odd[0]} is no number" if odd else _bad_text(event) or _bad_place(event)


def _bad_text(event: Told) -> str:
    text = event.data.get("text")
    return "" if isinstance(text, str) and len(text) <= CHARACTERS else "text is missing or too long"


def _bad_place(event: Told) -> str:
    return not_counts(event, "model", "prompt", most=SMALL_INT) or not_counts(event, "tokens", most=TOKENS)


def _is_figure(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST  # no NaN is


def _model(trial_id: int, event: Told) -> None:
    trial = Trial.objects.filter(pk=trial_id).first()
    if trial and event.data["model"] < len(trial.asked):
        known = {name: event.data[name] for name in OF_MODEL if name in event.data}
        trial.asked[event.data["model"]] |= known
        trial.save(update_fields=["asked"])


def _token(trial_id: int, event: Told) -> None:
    text = Concat(F("text"), Value(event.data["text"]))
    _answer_of(trial_id, event).filter(stopped_by="").update(text=text, tokens=event.data["tokens"])


def _answer(trial_id: int, event: Told) -> None:
    """The whole answer takes the place of its pieces."""
    names = ("text", "tokens", "stopped_by", *FIGURES)
    _answer_of(trial_id, event).update(**{name: event.data.get(name) for name in names})


def _answer_of(trial_id: int, event: Told) -> Any:
    return Answer.objects.filter(trial=trial_id, model=event.data["model"], prompt=event.data["prompt"])


def register() -> None:
    jobkinds.register(
        jobkinds.JobKind(
            Trial,
            checks={Kind.MODEL: bad_model, Kind.TOKEN: bad_token, Kind.ANSWER: bad_answer},
            handlers={Kind.MODEL: _model, Kind.TOKEN: _token, Kind.ANSWER: _answer},
            parts=("trial", "answers"),
        )
    )
    jobkinds.when_done(Export.KIND, actions.after_export)
    page.PARTS["answers"] = fixed.part
