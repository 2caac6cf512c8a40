"""New run: what will happen if I press Launch?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from training.spec import presets
from training.spec.foreseen import foreseen
from training.spec.length import total_steps
from training.spec.lint import Problem, Refused
from training.spec.recipe import Recipe, merge
from webapp.datasets.models import Version
from webapp.fleet import clusters
from webapp.keys import key_of
from webapp.people import person

from .. import actions, prompt_text, wish_fields
from ..differences import Edit, between
from ..failure import advice_named
from ..files import LaunchFiles, planned
from ..form_fields import common, groups
from ..forms import ASKED, RunForm
from ..models import ModelSource, Run
from ..queue.board import slots
from ..rates import RateCurve, rate_curve
from ..shelf.room import Room, beforehand, tightest
from .find import get_run


def new(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, _opened(request))
    form = RunForm.of(request.POST)
    try:
        if turn := _turned(request, form):
            return turn
        run = _made(request, form)
    except Refused as refused:
        return _page(request, form, refused.problems, status=422)
    messages.success(request, "Launched: it waits for its nodes." if run.state != "draft" else "Saved as a draft.")
    return redirect(run)


@require_POST
def panel(request: HttpRequest) -> HttpResponse:
    """Answer the live panel alone, for the form as it stands."""
    form = RunForm.of(request.POST)
    return render(request, "runs/new_panel.html", {"form": form, "forecast": forecast(form)})


def _opened(request: HttpRequest) -> RunForm:
    if source := key_of(request.GET.get("from", "")):
        return _clone(get_run(source), request.GET.get("advice", ""))
    return RunForm.fresh(_first_preset())


def _clone(run: Run, key: str) -> RunForm:
    """Return the form of a clone, with the change in it that the failed run's page advises under `key`."""
    form = RunForm.clone_of(run)
    if advice := advice_named(run, key):
        form.fill(merge(run.recipe, advice.overrides))
    return form


def _first_preset() -> str:
    """Return the preset to open with: one that needs the fewest ranks, so that a first try can run."""
    loaded = sorted((presets.load(name) for name in presets.names()), key=lambda p: (p.processes, p.name))
    return loaded[0].name


def _turned(request: HttpRequest, form: RunForm) -> HttpResponse | None:
    """Answer the buttons that only change what the form shows."""
    if "load" in request.POST:
        form.fill(presets.load(form.preset).recipe.model_dump(mode="json"))
    elif editor := request.POST.get("turn"):
        form.turn_to(editor)
    else:
        return None
    return _page(request, form)


@transaction.atomic
def _made(request: HttpRequest, form: RunForm) -> Run:
    """Make the run and, where asked, launch it; refused, there is neither."""
    key = key_of(form.source)
    source = get_run(key) if key else None
    run = actions.create(form.order(), person(request), cloned_from=source)
    if "launch" in request.POST:
        actions.launch(run, person(request).username)
    return run


@dataclass(frozen=True)
class Forecast:
    """What would happen: problems by field, else figures and the exact files. `differs`: from the clone's source."""

    problems: list[Problem]
    recipe: Recipe | None = None
    files: LaunchFiles = field(default_factory=LaunchFiles)
    ranks: int = 0
    nodes: int = 0
    rows: int = 0
    number: int = 0
    differs: list[Edit] = field(default_factory=list)
    room: Room | None = None

    @property
    def rows_a_step(self) -> int:
        o = self.recipe.optimisation if self.recipe else None
        return o.per_device_batch * o.accumulation * self.ranks if o else 0

    @property
    def epochs(self) -> float:
        return self.steps * self.rows_a_step / self.rows if self.rows else 0.0

    @property
    def curve(self) -> RateCurve | None:
        return rate_curve(self.recipe, self.steps) if self.recipe else None

    @property
    def kept(self) -> str:
        """Which checkpoints stay, in words."""
        return foreseen(self.recipe.checkpoints, self.steps).sentence if self.recipe else ""

    @property
    def steps(self) -> int:
        return total_steps(self.recipe, rows=self.rows, ranks=self.ranks) if self.recipe else 0


def forecast(form: RunForm) -> Forecast:
    """Check an order as creating it would; touch nothing."""
    try:
        order = form.order()
        recipe = actions.check(replace(order, name=order.name or "not named yet"))
    except Refused as refused:
        return Forecast(refused.problems)
    wanted = slots(order.cluster, order.wish)
    newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first()
    number = (newest or 0) + 1
    files = planned(recipe, actions.target_of(order), wanted, run=number)
    ranks = sum(slot.processes for slot in wanted)
    steps = total_steps(recipe, rows=order.dataset.rows, ranks=ranks)
    room = tightest(beforehand(order.model, recipe, order.cluster, order.wish, steps))
    differs = _differences(form, order, recipe)
    return Forecast([], recipe, files, ranks, len(wanted), order.dataset.rows, number, differs, room)


def _differences(form: RunForm, order: actions.Order, recipe: Recipe) -> list[Edit]:
    source = Run.objects.filter(pk=key_of(form.source) or 0).first()
    return between(source, order, recipe.model_dump(mode="json")) if source else []


def _page(
    request: HttpRequest, form: RunForm, problems: list[Problem] | None = None, status: int = 200
) -> HttpResponse:
    known = {"name", "preset", "model", "dataset", "cluster", *ASKED}
    wish = wish_fields.fields(form.asked, problems or [])
    context = {
        "form": form,
        "wish_fields": wish,
        "wish_open": any(field.value or field.problems for field in wish),
        "problems": problems or [],
        "by_field": {name: [p for p in problems or [] if p.field == name] for name in known},
        "fields": common(form, problems or []),
        "groups": groups(form, problems or []),
        "example_prompts": prompt_text.show(prompt_text.EXAMPLES),
        "recipe_problems": [p for p in problems or [] if p.field not in known],
        "presets": [presets.load(name) for name in presets.names()],
        "models": ModelSource.objects.all(),
        "versions": Version.objects.select_related("dataset"),
        "clusters": clusters.with_nodes(),
        "forecast": forecast(form),
    }
    return render(request, "runs/new.html", context, status=status)
