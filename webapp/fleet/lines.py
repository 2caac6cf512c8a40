"""Text of one line: what goes as one into a file, a command's words or a page must not turn out to be two."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check(text: str) -> None:
    """Raise ValidationError where there is a line break, which a pattern's `$` lets pass at the end, or the like."""
    if BREAKS.search(text):
        raise ValidationError("It holds a line break or another control character.")


def check_fields(fields: dict[str, str]) -> None:
    """Raise ValidationError for those of {field: text} that are not one line."""
    wrong = {}
    for name, text in fields.items():
        try:
            check(text)
        except ValidationError as error:
            wrong[name] = error
    if wrong:
        raise ValidationError(wrong)
