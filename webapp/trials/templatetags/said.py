"""How models' words and their figures are shown: text that may be anything, never markup."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.runs.models import Export

from .. import fixed
from ..models import Answer, Trial

register = template.Library()

LONG, SHOWN = 2400, 1200  # characters: from where on it is folded, and what then stays in sight
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
ENDS = {
    "eos": "came to its end",
    "tokens": "cut at the limit on tokens",
    "time": "cut, the time was over",
    "stop": "stopped on request",
}


@register.filter
def visible(text: str) -> str:
    """Return `text` with its control characters as pictures: a terminal's codes move nothing here."""
    return text.translate(PICTURES)


@register.filter
def short(text: str) -> str:
    """Return `text` for a table: without the blank lines around it, and in words where there is nothing else."""
    return visible(text.strip()) or ("(white space alone)" if text else "")


@register.filter
def is_long(text: str) -> bool:
    return len(text) > LONG


@register.filter
def first_part(text: str) -> str:
    return text[:SHOWN]


@register.filter
def other_part(text: str) -> str:
    return text[SHOWN:]


@register.filter
def last_part(text: str) -> str:
    return text[-SHOWN:]


@register.filter
def ended(answer: Answer) -> str:
    """Return by what the answer ended, in words."""
    return ENDS.get(answer.stopped_by, "")


@register.filter
def how(trial: Trial) -> str:
    """Return how tokens are chosen, and the limits, in one line."""
    sampling = trial.sampling
    greedy = not sampling["temperature"]
    tokens = f"up to {sampling['max_new_tokens']} tokens each, {trial.seconds:g} s for all"
    if greedy:
        return f"always the likeliest token · {tokens}"
    top = f", top-p {sampling['top_p']:g}" if sampling["top_p"] < 1 else ""
    return f"temperature {sampling['temperature']:g}{top}, seed {sampling['seed']} · {tokens}"


@register.filter
def asks(prompt: dict[str, Any]) -> str:
    """Return what a prompt asks, without its system turn, on one line."""
    turns = [turn for turn in prompt.get("messages", []) if turn["role"] != "system"]
    text = "\n".join(turn["content"] for turn in turns) if turns else prompt.get("text", "")
    return " ".join(text.split())


@register.inclusion_tag("trials/fixed.html")
def fixed_answers(export: Export) -> dict[str, Any]:
    """Show what an export and its base answered to the recipe's own prompts."""
    return {"run": export.run, "part": fixed.table(export.run, export), "only": export}
