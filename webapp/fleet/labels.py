"""Labels of a node: short words by which it can be asked for and found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from training.spec.lint import Problem, Refused

WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,29}")
MOST = 20


def labels_of(text: str) -> list[str]:
    """Return what a person typed, apart by commas or spaces, as labels; raise Refused."""
    return checked(text.replace(",", " ").split())


def checked(words: Iterable[str]) -> list[str]:
    """Return `words` in lower case, each once, in order; raise Refused."""
    found = sorted({word.strip().lower() for word in words})
    wrong = [word for word in found if not WORD.fullmatch(word)]
    if wrong:
        fix = "Use letters, digits, dots, dashes and underscores, 30 at most, such as: a100 nvlink."
        raise Refused([Problem("labels", f"{', '.join(map(repr, wrong))[:100]} can't be a label", fix)])
    if len(found) > MOST:
        raise Refused([Problem("labels", f"there are {len(found)}", f"Give {MOST} at most.")])
    return found
