"""Say what a recipe may hold: python -m training schema [--markdown]; python -m training preset [NAME]

schema prints JSON Schema (draft 2020-12); with --markdown the page docs/recipe.md. preset prints a preset's recipe as
YAML; without a name the presets there are.
"""

from __future__ import annotations

import argparse
import json
import sys

from .spec import document, presets
from .spec.lint import Refused
from .spec.schema import recipe_schema


def schema(argv: list[str]) -> int:
    """Print the schema."""
    parser = argparse.ArgumentParser(prog="python -m training schema", description="Say what a recipe may hold.")
    parser.add_argument("--markdown", action="store_true", help="the page docs/recipe.md in place of JSON Schema")
    markdown = parser.parse_args(argv).markdown
    print(document.page() if markdown else json.dumps(recipe_schema(), indent=2, allow_nan=False))
    return 0


def preset(argv: list[str]) -> int:
    """Print a preset's recipe; 2 where there is none of that name."""
    parser = argparse.ArgumentParser(prog="python -m training preset", description="Print a preset's recipe as YAML.")
    parser.add_argument("name", nargs="?")
    name = parser.parse_args(argv).name
    try:
        print(written(name) if name else "\n".join(f"{n:<28} {presets.load(n).title}" for n in presets.names()))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


def written(name: str) -> str:
    """Return the preset's whole recipe, headed by what it is for."""
    found = presets.load(name)
    nodes = f"{found.nodes} node{'s' * (found.nodes > 1)}"
    head = f"# {found.title}\n# Written for {nodes} of {found.processes} rank{'s' * (found.processes > 1)}.\n"
    return head + found.recipe.to_yaml().rstrip()
