"""The recipe as JSON Schema, for editors, forms and other programs."""

from __future__ import annotations

from typing import Any

from .recipe import VERSION, Recipe


def recipe_schema() -> dict[str, Any]:
    """Return the recipe's JSON Schema, draft 2020-12. Rules between fields are not in it: `parse_recipe` has them."""
    found = Recipe.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:shardboard:recipe:{VERSION}",
        **found,
        "title": "Shardboard recipe",
    }
