"""The recipe's schema says what the recipe is: strict JSON, every field described, every preset valid; docs follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from training.describe import preset, schema, written
from training.spec import document, presets
from training.spec.lint import parse_recipe
from training.spec.reading import read_yaml
from training.spec.recipe import Recipe
from training.spec.schema import recipe_schema

DOCS = Path(__file__).parents[2] / "docs" / "recipe.md"


def fields() -> list[tuple[str, dict[str, Any]]]:
    """Return (dotted name, its schema) of every field that holds no section."""
    found = recipe_schema()
    named = [(name, body) for name, body in found["properties"].items() if "$ref" not in body]
    for name, body in found["properties"].items():
        if "$ref" in body:
            section = found["$defs"][body["$ref"].rpartition("/")[2]]
            named += [(f"{name}.{field}", inner) for field, inner in section["properties"].items()]
    return named


def test_it_is_strict_json_and_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    def odd(name: str) -> None:
        raise AssertionError(name)

    assert schema([]) == 0
    printed = json.loads(capsys.readouterr().out, parse_constant=odd)
    Draft202012Validator.check_schema(printed)
    assert printed == recipe_schema()


@pytest.mark.parametrize(("name", "body"), fields(), ids=[name for name, _ in fields()])
def test_every_field_is_described_and_has_a_default(name: str, body: dict[str, Any]) -> None:
    assert body["description"].endswith((".", ")"))
    assert "default" in body


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_fits_and_holds_every_field(name: str) -> None:
    recipe = presets.load(name).recipe.model_dump(mode="json")
    Draft202012Validator(recipe_schema()).validate(recipe)
    flat = {key if not isinstance(value, dict) else f"{key}.{inner}" for key, value in recipe.items()
            for inner in (value if isinstance(value, dict) else ("",))}  # fmt: skip
    assert flat == {field for field, _ in fields()}


@pytest.mark.parametrize("wrong", [{"precision": "fp8"}, {"fnord": 1}, {"optimisation": {"max_steps": 0}}])
def test_it_refuses_what_the_recipe_refuses(wrong: dict[str, Any]) -> None:
    assert list(Draft202012Validator(recipe_schema()).iter_errors(wrong))


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_printed_is_a_recipe_read(name: str) -> None:
    assert parse_recipe(read_yaml(written(name))) == presets.load(name).recipe


def test_presets_are_listed_and_an_unknown_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert preset([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == presets.names()
    assert preset(["fnord"]) == 2
    assert "Known: " in capsys.readouterr().err


def test_the_page_is_current() -> None:
    """To renew it: python -m training schema --markdown > docs/recipe.md"""
    assert DOCS.read_text("utf-8") == document.page() + "\n"


def test_the_page_names_every_field() -> None:
    text = document.page()
    assert all(f"| `{name.rpartition('.')[2]}` |" in text for name, _ in fields())
    assert all(
        f"## {name}" in text for name, info in Recipe.model_fields.items() if "." not in name and _is_section(info)
    )


def _is_section(info: Any) -> bool:
    return isinstance(info.annotation, type) and hasattr(info.annotation, "model_fields")
