"""PURE: a recipe's prompts as one text in a form: each after a line of three dashes, a chat as its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

BETWEEN = re.compile(r"^---[ \t]*$", re.MULTILINE)


# Short, and unlike each other: a fact, some code, an instruction to the letter.
EXAMPLES = (
    "What is the capital of France?",
    "Write a Python function that returns the sum of two numbers.",
    "Answer with one word: is ice warmer than steam?",
)


def parse(text: str) -> list[Any]:
    """Return the prompts in `text`; what looks like a chat and is none stays a text."""
    parts = (part.strip() for part in BETWEEN.split(text.replace("\r\n", "\n")))
    return [_one(part) for part in parts if part]


def show(prompts: Iterable[Any]) -> str:
    """Return the text that `parse` makes the same prompts of."""
    return "\n---\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in prompts)


def _one(part: str) -> Any:
    if not part.startswith("["):
        return part
    try:
        found = json.loads(part)
    except (ValueError, RecursionError):
        return part
    return found if isinstance(found, list) and found and all(isinstance(turn, dict) for turn in found) else part
