"""The new-run form: nothing lost, problems at their fields, and the very files that workers would put."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.test import Client
from pydantic import BaseModel

from training.spec import presets
from training.spec.lint import Refused, parse_recipe
from training.spec.plan import Launch, plan_attempt
from training.spec.recipe import Recipe
from training.spec.sections.method import Method
from webapp.runs import actions
from webapp.runs.form_fields import COMMON
from webapp.runs.forms import RunForm
from webapp.runs.models import Run
from webapp.runs.queue.board import slots
from webapp.runs.queue.wish import Wish
from webapp.runs.recipe_fields import NOT_HERE, ONLY_WHEN, laid_over, specs, typed

from .rows import HOSTILE, World


@pytest.fixture
def filled(world: World) -> dict[str, Any]:
    form = RunForm.fresh("tiny")
    return {
        "name": "my run",
        "preset": "tiny",
        "model": str(world.model.pk),
        "dataset": str(world.version.pk),
        "cluster": str(world.cluster.pk),
        "editor": "form",
        "yaml": form.text,
        **form.fields,
    }


def test_it_opens_with_what_there_is_only_one_of(page: Client, world: World) -> None:
    form = page.get("/runs/new/").context["form"]
    assert (form.model, form.dataset, form.cluster) == (
        str(world.model.pk),
        str(world.version.pk),
        str(world.cluster.pk),
    )
    assert set(form.fields) == set(specs())
    assert set(COMMON) < set(form.fields)


def test_it_saves_a_draft(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post(
        "/runs/new/", filled | {"save": "1", "optimisation.learning_rate": "3e-4", "export.at_end": "on"}
    )
    run = Run.objects.get()
    assert answer.headers["Location"] == f"/runs/{run.pk}/"
    assert (run.state, run.name, run.owner.username) == ("draft", "my run", "ada")
    assert run.recipe["optimisation"]["learning_rate"] == 3e-4
    assert run.recipe["export"]["at_end"] is True


def test_it_launches(page: Client, filled: dict[str, Any]) -> None:
    page.post("/runs/new/", filled | {"launch": "1"})
    run = Run.objects.get()
    assert (run.state, run.attempt.number) == ("queued", 1)


def test_it_rejects_with_the_problem_at_its_field_and_loses_nothing(page: Client, filled: dict[str, Any]) -> None:
    typed = {"name": HOSTILE, "optimisation.learning_rate": "fast", "optimisation.max_steps": "0", "model": ""}
    answer = page.post("/runs/new/", filled | typed | {"launch": "1"})
    assert answer.status_code == 422
    assert not Run.objects.exists()
    found = {problem.field for problem in answer.context["problems"]}
    assert found == {"model"}  # without a model nothing else can be asked
    answer = page.post("/runs/new/", filled | typed | {"launch": "1", "model": filled["model"]})
    by_key = {field.spec.key: field for field in answer.context["fields"]}
    assert by_key["optimisation.learning_rate"].problems
    assert by_key["optimisation.max_steps"].problems
    assert by_key["optimisation.learning_rate"].value == "fast"
    text = answer.content.decode()
    assert 'value="fast"' in text
    assert "<img src=x" not in text
    assert not Run.objects.exists()


def test_it_rejects_an_empty_name(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/", filled | {"name": " ", "save": "1"})
    assert [p.field for p in answer.context["by_field"]["name"]] == ["name"]


def test_all_fields_take_over_what_was_typed_and_back(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/", filled | {"turn": "yaml", "optimisation.max_steps": "77"})
    form = answer.context["form"]
    assert form.at == "yaml"
    recipe = yaml.safe_load(form.text)
    assert recipe["optimisation"]["max_steps"] == 77
    recipe["optimisation"]["max_steps"] = 78
    back = filled | {"turn": "form", "editor": "yaml", "yaml": yaml.safe_dump(recipe)}
    form = page.post("/runs/new/", back).context["form"]
    assert (form.at, form.fields["optimisation.max_steps"]) == ("form", "78")


def test_broken_yaml_names_its_line_and_stays(page: Client, filled: dict[str, Any]) -> None:
    broken = "optimisation:\n  max_steps: [1\nprecision: bf16\n"
    answer = page.post("/runs/new/", filled | {"editor": "yaml", "yaml": broken, "launch": "1"})
    assert answer.status_code == 422
    assert answer.context["form"].text == broken
    (problem,) = answer.context["problems"]
    assert (problem.field, "line 3" in problem.reason) == ("recipe", True)


def test_yaml_without_end_or_with_a_nul_is_refused(page: Client, filled: dict[str, Any]) -> None:
    for text, field in (("a: " + "[" * 5000, "recipe"), ('data: {text_field: "\\0"}', "data.text_field")):
        answer = page.post("/runs/new/", filled | {"editor": "yaml", "yaml": text, "save": "1"})
        assert (answer.status_code, field in answer.content.decode()) == (422, True)


@pytest.mark.parametrize("value", ["2001-99-99", "9" * 5000, "2001-02-03 99:00:00"])
def test_a_yaml_value_that_can_not_be_read_is_refused(page: Client, filled: dict[str, Any], value: str) -> None:
    text = f"optimisation: {{max_steps: {value}}}"
    answer = page.post("/runs/new/", filled | {"editor": "yaml", "yaml": text, "save": "1"})
    assert answer.status_code == 422
    (problem,) = answer.context["problems"]
    assert (problem.field, "can't be read" in problem.reason) == ("recipe", True)


def test_an_unknown_field_in_yaml_is_named(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/", filled | {"editor": "yaml", "yaml": "optimisation:\n  max_step: 3\n", "save": "1"})
    (problem,) = answer.context["recipe_problems"]
    assert (problem.field, problem.fix) == ("optimisation.max_step", "Did you mean max_steps?")


def test_a_preset_loads_its_recipe(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/", filled | {"load": "1", "preset": "smollm2-135m-demo"})
    steps = presets.load("smollm2-135m-demo").recipe.optimisation.max_steps
    assert answer.context["form"].fields["optimisation.max_steps"] == str(steps)


def test_the_panel_shows_the_files_that_would_be_put(page: Client, world: World, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/panel", filled)
    forecast = answer.context["forecast"]
    order = RunForm.of(filled).order()
    plans = plan_attempt(
        actions.check(order),
        actions.target_of(order),
        slots(world.cluster, Wish()),
        Launch(forecast.number, 1, 0, "CODE-HASH"),
    )
    assert [dict(node.files) for node in forecast.files.nodes] == [dict(plan.files) for plan in plans]
    assert forecast.ranks == 2
    assert forecast.rows_a_step == 8
    assert not Run.objects.exists()


def test_the_panel_says_what_is_wrong(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/panel", filled | {"data.max_length": "3"})
    assert [p.field for p in answer.context["forecast"].problems] == ["data.max_length"]


def test_fsdp1_without_a_gpu_is_refused(page: Client, filled: dict[str, Any]) -> None:
    recipe = yaml.safe_load(filled["yaml"])
    recipe["fsdp"]["version"] = 1
    answer = page.post("/runs/new/panel", filled | {"editor": "yaml", "yaml": yaml.safe_dump(recipe)})
    assert "fsdp.version" in [p.field for p in answer.context["forecast"].problems]


def test_a_clone_says_what_differs(page: Client, world: World, filled: dict[str, Any]) -> None:
    source = world.draft("the source")
    form = page.get(f"/runs/new/?from={source.pk}").context["form"]
    assert (form.name, form.source) == ("the source (clone)", str(source.pk))
    changed = filled | {"source": str(source.pk), "optimisation.max_steps": "5"}
    forecast = page.post("/runs/new/panel", changed).context["forecast"]
    assert forecast.differs == [("optimisation.max_steps", 12, 5)]
    page.post("/runs/new/", changed | {"save": "1"})
    assert Run.objects.exclude(pk=source.pk).get().cloned_from == source


def test_where_it_would_like_to_train_is_kept_checked_and_cloned(page: Client, filled: dict[str, Any]) -> None:
    asked = {"nodes": "1", "on_nodes": "beta, alpha", "priority": "5"}
    forecast = page.post("/runs/new/panel", filled | asked).context["forecast"]
    assert (forecast.ranks, [node.name for node in forecast.files.nodes]) == (1, ["alpha"])
    refused = page.post("/runs/new/", filled | asked | {"nodes": "3", "on_nodes": "", "save": "1"})
    assert [problem.field for problem in refused.context["problems"]] == ["nodes"]
    assert refused.context["wish_open"]
    page.post("/runs/new/", filled | asked | {"save": "1"})
    run = Run.objects.get()
    assert (run.wished(), run.priority) == (Wish(1, on_nodes=("beta", "alpha")), 5)
    form = page.get(f"/runs/new/?from={run.pk}").context["form"]
    assert form.asked == {"nodes": "1", "gpus_per_node": "", "labels": "", "on_nodes": "beta, alpha", "priority": ""}


def test_enter_makes_nothing(page: Client, filled: dict[str, Any]) -> None:
    text = page.get("/runs/new/").content.decode()
    first = text[text.index('id="new-run"') :]
    button = first[first.index("<button") : first.index("</button>")]
    assert 'name="turn"' in button
    page.post("/runs/new/", filled | {"turn": "form"})
    assert not Run.objects.exists()


@pytest.mark.parametrize("source", ["9" * 30, "9" * 5000, "\u0663"])
def test_a_source_that_no_run_can_have_is_no_source(
    page: Client, world: World, filled: dict[str, str], source: str
) -> None:
    assert page.get("/runs/new/", {"from": source}).status_code == 200
    assert page.post("/runs/new/", filled | {"source": source, "save": "1"}).status_code == 302
    assert Run.objects.get().cloned_from is None


def leaves(model: type[BaseModel], above: str = "") -> set[str]:
    found = set()
    for name, info in model.model_fields.items():
        inner = info.annotation
        is_section = isinstance(inner, type) and issubclass(inner, BaseModel)
        found |= leaves(inner, f"{above}{name}.") if is_section else {above + name}
    return found


def test_every_field_of_the_recipe_has_one_control_with_its_description(page: Client, world: World) -> None:
    answer = page.get("/runs/new/")
    drawn = [*answer.context["fields"], *(field for group in answer.context["groups"] for field in group.fields)]
    keys = [field.spec.key for field in drawn]
    assert len(keys) == len(set(keys))
    assert set(keys) == leaves(Recipe) - NOT_HERE
    assert all(field.spec.hint and field.label for field in drawn)
    text = answer.content.decode()
    assert all(f'name="{key}"' in text for key in keys)


@pytest.mark.parametrize("preset", presets.names())
def test_the_fields_say_the_whole_recipe(preset: str) -> None:
    recipe = presets.load(preset).recipe
    assert parse_recipe(laid_over({}, typed(recipe.model_dump(mode="json")))) == recipe


def test_what_is_folded_away_is_the_default_again() -> None:
    """Turned from QLoRA to full in the form: the adapter's fields are hidden, and no longer asked for."""
    base = presets.load("llama-2-70b-qlora-1x8-a100").recipe.model_dump(mode="json")
    assert (base["method"]["rank"], base["method"]["alpha"]) == (64, 16)
    fields = typed(base) | {"method.kind": "full", "export.adapter": "adapter", "fsdp.forward_prefetch": "on"}
    recipe = parse_recipe(laid_over(base, fields))
    assert recipe.method == Method()
    assert (recipe.export.adapter, recipe.fsdp.forward_prefetch) == ("merged", False)
    assert recipe.optimisation.max_grad_norm == 0.3


def test_prompts_are_one_text_with_a_line_of_dashes_between_two(page: Client, world: World) -> None:
    text = 'One,\r\ntwo\r\n---\r\n[{"role": "user", "content": "é"}]\n--- \n[not a chat]\n---\n\n'
    recipe = parse_recipe(laid_over({}, {"prompts.ask": text}))
    first, chat, third = recipe.prompts.ask
    assert (first, chat[0].content, third) == ("One,\ntwo", "é", "[not a chat]")
    assert parse_recipe(laid_over({}, typed(recipe.model_dump(mode="json")))) == recipe
    assert "What is the capital of France?\n---\n" in page.get("/runs/new/").content.decode()
    with pytest.raises(Refused, match=r"data\.format is text"):
        parse_recipe({"prompts": {"ask": [[{"role": "user", "content": "x"}]]}, "data": {"format": "text"}})


def test_lists_ticks_and_whole_numbers_become_what_the_recipe_wants() -> None:
    typed_in = {
        "method.kind": "lora", "method.target_modules": " q_proj,v_proj\n k_proj ", "trackers.names": "wandb, mlflow",
        "optimisation.betas": "0.9 0.95", "fsdp.version": "1", "data.template": "a\r\nb", "fsdp.cpu_offload": "on",
    }  # fmt: skip
    recipe = parse_recipe(laid_over({}, typed_in))
    assert recipe.method.target_modules == ("q_proj", "v_proj", "k_proj")
    assert recipe.trackers.names == ("wandb", "mlflow")
    assert recipe.optimisation.betas == (0.9, 0.95)
    assert (recipe.fsdp.version, recipe.fsdp.cpu_offload, recipe.data.template) == (1, True, "a\nb")


def test_several_ticks_are_posted_as_a_browser_does(page: Client, filled: dict[str, Any]) -> None:
    form = page.post("/runs/new/", filled | {"turn": "form", "trackers.names": ["", "wandb", "mlflow"]}).context["form"]
    assert form.fields["trackers.names"] == "wandb, mlflow"
    form = page.post("/runs/new/", filled | {"turn": "form", "export.at_end": ["", "on"]}).context["form"]
    assert form.fields["export.at_end"] == "on"


def test_only_what_differs_from_the_preset_is_marked(page: Client, filled: dict[str, Any]) -> None:
    typed_in = {"turn": "form", "optimisation.learning_rate": "1e-3", "optimisation.weight_decay": "0.2"}
    answer = page.post("/runs/new/", filled | typed_in)  # the preset's rate is 0.001
    by_name = {group.name: group for group in answer.context["groups"]}
    assert [group.name for group in by_name.values() if group.differing] == ["optimisation"]
    assert not any(field.differs for field in answer.context["fields"])
    assert "1 differs from the preset" in answer.content.decode()


def test_a_section_with_a_problem_comes_back_unfolded(page: Client, filled: dict[str, Any]) -> None:
    answer = page.post("/runs/new/", filled | {"save": "1", "limits.restarts": "often", "data.train_on": "completion"})
    assert {group.name for group in answer.context["groups"] if group.is_open} == {"limits", "data"}
    assert "does not go with format messages" in answer.content.decode()


def test_what_means_nothing_beside_the_others_is_folded_away(page: Client, filled: dict[str, Any]) -> None:
    def hidden(answer: Any) -> set[str]:
        return {f.spec.key for group in answer.context["groups"] for f in group.fields if not f.applies}

    full = hidden(page.get("/runs/new/"))
    assert {"method.rank", "fsdp.sync_module_states", "data.text_field"} <= full
    lora = hidden(page.post("/runs/new/", filled | {"turn": "form", "method.kind": "lora"}))
    assert full - lora == {key for key, (other, values) in ONLY_WHEN.items() if "lora" in values}


def test_by_what_the_best_are_kept_is_asked_where_some_are(page: Client, filled: dict[str, Any]) -> None:
    def shown(**typed_in: str) -> bool:
        answer = page.post("/runs/new/", filled | {"turn": "form"} | typed_in)
        found = {f.spec.key: f for group in answer.context["groups"] for f in group.fields}
        return found["checkpoints.best_metric"].applies

    assert not shown()
    assert not shown(**{"checkpoints.keep_best": " 0"})
    assert shown(**{"checkpoints.keep_best": "2"})


def test_the_panel_says_which_checkpoints_will_stay(page: Client, filled: dict[str, Any]) -> None:
    asked = {"optimisation.max_steps": "2000", "checkpoints.every_steps": "250", "checkpoints.keep_best": "1",
             "checkpoints.keep": "3", "checkpoints.best_metric": "loss", "checkpoints.keep_every": "500"}  # fmt: skip
    text = page.post("/runs/new/panel", filled | asked).content.decode()
    assert "with 2,000 steps these stay: 1,500, 1,750, 2,000 (newest 3), 500, 1,000 (every 500)" in text
    assert "at most 7 on disk at once" in text


def test_the_best_by_evaluation_need_rows_to_evaluate_on(page: Client, world: World, filled: dict[str, Any]) -> None:
    asked = filled | {"save": "1", "checkpoints.keep_best": "1", "optimisation.evaluate_every": "5"}
    world.version.__class__.objects.update(test_rows=0)
    answer = page.post("/runs/new/", asked)
    assert answer.status_code == 422
    (problem,) = answer.context["problems"]
    assert (problem.field, "no test rows" in problem.reason) == ("checkpoints.keep_best", True)
    assert page.post("/runs/new/", asked | {"data.test_share": "0.1"}).status_code == 302


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant", "constant_with_warmup"])
@pytest.mark.parametrize("steps", ["1", "2", "300"])
def test_the_planned_rate_is_drawn_before_launch(
    page: Client, filled: dict[str, Any], schedule: str, steps: str
) -> None:
    asked = {"optimisation.schedule": schedule, "optimisation.max_steps": steps}
    answer = page.post("/runs/new/panel", filled | asked)
    curve = answer.context["forecast"].curve
    heights = [float(pair.split()[1]) for pair in curve.path.replace("M", "").split(" L")]
    assert all(0 <= height <= curve.height for height in heights)
    assert f'd="{curve.path}"' in answer.content.decode()
    assert f"step {steps}" in curve.words or f"each of {steps} steps" in curve.words
