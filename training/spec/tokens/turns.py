"""Where the assistant speaks in a rendered chat, for templates that don't mark it with generation tags.

A chat is rendered turn by turn: what the template says up to a turn must be the beginning of what it says of the
whole, so that the rest, up to the end of that turn, is the turn. The header that asks the assistant to speak is
not part of it, its end token is: the model has to write the one and is given the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

Message = Mapping[str, str]
Span = tuple[int, int]  # characters of the rendered chat, end exclusive
Render = Callable[[Sequence[Message], bool], str]  # (turns, with the assistant's header behind them)


class Underivable(ValueError):
    """The template does not let us tell the assistant's turns from the rest."""


def assistant_spans(messages: Sequence[Message], render: Render, ends: Collection[str]) -> list[Span]:
    """Return the span of each assistant turn, in order.

    `ends`: special tokens; white space that a template puts behind one is not trained. Raises Underivable.
    """
    whole = render(messages, False)
    turns = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    spans = [_without_tail(whole, _turn(whole, messages, number, render), ends) for number in turns]
    if any(start >= end for start, end in spans):
        raise Underivable("it renders an assistant turn as nothing")
    if any(before[1] > after[0] for before, after in pairwise(spans)):
        raise Underivable("it renders assistant turns into each other")
    return spans


def _turn(whole: str, messages: Sequence[Message], number: int, render: Render) -> Span:
    end = _prefix(whole, render(messages[: number + 1], False), number + 1)
    if number == 0:  # few templates render no turn at all
        return _header(whole, 0, end, messages[0]["content"]), end
    before = _prefix(whole, render(messages[:number], False), number)
    asked = render(messages[:number], True)
    if len(asked) > before:
        return _prefix(whole, asked, number), end
    return _header(whole, before, end, messages[number]["content"]), end


def _prefix(whole: str, part: str, turns: int) -> int:
    if not whole.startswith(part):
        raise Underivable(f"what it says up to turn {turns} is different when others follow")
    return len(part)


def _header(whole: str, start: int, end: int, content: str) -> int:
    """Return where the turn begins behind its header, in a template that can't be asked for the header alone."""
    found = whole.find(content.strip(), start, end)
    if found < 0:
        raise Underivable("it has no header for the assistant to be asked with and does not repeat what was said")
    return found if whole[start:found].strip() else start


def _without_tail(whole: str, span: Span, ends: Collection[str]) -> Span:
    start, end = span
    body = whole[start:end].rstrip()
    return (start, start + len(body)) if body.endswith(tuple(filter(None, ends))) else span


def covered(spans: Sequence[Span], offsets: Sequence[Span]) -> list[bool]:
    """Return for each token whether it holds a character of a span. `offsets`: each token's characters, ascending."""
    found, left = [], list(reversed(spans))
    for start, end in offsets:
        while left and left[-1][1] <= start:
            left.pop()
        found.append(bool(left) and end > left[-1][0] and end > start)
    return found
