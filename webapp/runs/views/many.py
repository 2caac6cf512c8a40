"""What is done to several runs of the list at once; each one's outcome is told, on the same page of the list."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from training.spec.lint import Problem, Refused
from webapp.keys import key_of
from webapp.people import person

from .. import actions
from ..models import Run

SHOWN = 30  # numbers in one sentence
Act = Callable[[Run], object]


@require_POST
def many(request: HttpRequest) -> HttpResponse:
    """Take the ticked runs (`run`, several) and the button that was pressed (`act`); `back` is the list's query."""
    keys = [key for text in request.POST.getlist("run") if (key := key_of(text))]
    if request.POST.get("act") == "compare":
        return redirect(f"{reverse('runs:compare')}?{urlencode([('run', key) for key in keys])}")
    try:
        act, done = _chosen(request)
        _tell(request, actions.each(keys, act), done)
    except Refused as refused:
        for problem in refused.problems:
            messages.error(request, str(problem))
    back = QueryDict(request.POST.get("back", "")).urlencode()  # anew: nothing but a query of ours goes into a header
    return redirect(f"{reverse('runs:list')}?{back}".rstrip("?"))


def _chosen(request: HttpRequest) -> tuple[Act, str]:
    """Return the act and what is said once it is done."""
    actor, name = person(request).username, request.POST.get("act", "")
    tags = request.POST.get("tags", "").split(",")
    acts: dict[str, tuple[Act, str]] = {
        "stop": (lambda run: actions.stop(run, actor), "Stop requested"),
        "archive": (lambda run: actions.archive(run, actor), "Archived"),
        "unarchive": (actions.unarchive, "Back in the list"),
        "tag": (lambda run: actions.add_tags(run, tags), "Tagged"),
    }
    if name not in acts:
        raise Refused([Problem("act", f"{name[:40]!r} is none", f"Say one of {', '.join(acts)}.")])
    return acts[name]


def _tell(request: HttpRequest, outcome: actions.Outcome, done: str) -> None:
    if outcome.done:
        messages.success(request, f"{done}: {_numbers(outcome.done)}.")
    same: dict[str, list[int]] = {}
    for key, problems in outcome.refused:
        same.setdefault("; ".join(str(problem) for problem in problems), []).append(key)
    for why, keys in same.items():
        messages.error(request, f"Not {_numbers(keys)}: {why}")


def _numbers(keys: list[int]) -> str:
    shown = ", ".join(f"#{key}" for key in keys[:SHOWN])
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return f"run{'s' if len(keys) > 1 else ''} {shown}{more}"
