"""The first rows of a data set as training reads them: through the chat template, with what is trained marked.

Every token of a row is trained, up to the recipe's max_length; what lies beyond is cut. Needs the model's
tokenizer on this host (no torch), and fetches nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from training.spec.lint import Problem, Refused
from webapp.runs.models import ModelSource

from .models import Version

LONGEST = 20_000  # characters of a row that are rendered; a page is no place for a megabyte


@dataclass(frozen=True)
class Rendered:
    """One row: `trained` and then `cut` are its text. `tokens`: of the whole row."""

    number: int
    trained: str
    cut: str
    tokens: int


def render_rows(version: Version, model: ModelSource, count: int, max_length: int = 1024) -> list[Rendered]:
    """Return the first `count` rows; raise Refused where the tokenizer is not here or has no chat template."""
    tokenizer = _tokenizer(model)
    return [_rendered(tokenizer, number, row, max_length) for number, row in enumerate(first_rows(version, count), 1)]


def first_rows(version: Version, count: int) -> list[dict[str, Any]]:
    """Return the first `count` rows as stored; raise Refused where the file has gone."""
    try:
        with (version.folder / "train.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in islice(lines, count)]
    except OSError as error:
        fix = "Upload it again, or give the site the folder it had."
        raise Refused([Problem("dataset", f"its file can't be read: {error.strerror}", fix)]) from None


def _tokenizer(model: ModelSource) -> Any:
    folder = Path(model.location)
    if folder.is_absolute() and not folder.is_dir():
        raise _not_here(f"there is no folder {folder}")
    file = folder / "tokenizer.json"
    stamp = file.stat().st_mtime_ns if folder.is_absolute() and file.is_file() else 0
    try:
        return _loaded(model.location, model.revision, stamp)
    except (OSError, ValueError):
        where = f"{folder} holds none" if folder.is_absolute() else f"{model.location} is not cached"
        raise _not_here(where) from None


def _not_here(why: str) -> Refused:
    fix = "Choose a model whose folder this host can read."
    return Refused([Problem("model", f"its tokenizer is not on this host: {why}", fix)])


@lru_cache(maxsize=4)
def _loaded(location: str, revision: str, stamp: int) -> Any:
    """`stamp` tells a folder that was changed from what is held here."""
    from transformers import AutoTokenizer  # takes seconds to import, and only this page needs it

    return AutoTokenizer.from_pretrained(location, revision=revision or "main", local_files_only=True)


def _rendered(tokenizer: Any, number: int, row: dict[str, Any], max_length: int) -> Rendered:
    text = _text(tokenizer, row)[:LONGEST]
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    tokens = len(found["input_ids"])
    end = found["offset_mapping"][max_length - 1][1] if tokens > max_length else len(text)
    return Rendered(number, text[:end], text[end:], tokens)


def _text(tokenizer: Any, row: dict[str, Any]) -> str:
    if "messages" not in row:
        return next((str(value) for value in row.values()), "") + (tokenizer.eos_token or "")
    if not tokenizer.chat_template:
        raise Refused([Problem("model", "it has no chat template", "Choose one that has, or a data set of text.")])
    try:
        return str(tokenizer.apply_chat_template(row["messages"], tokenize=False))
    except Exception as error:  # noqa: BLE001  a template is the model's own program and raises what it likes
        raise Refused(
            [Problem("model", f"its chat template refuses a row: {error}", "Choose another model, or mend the rows.")]
        ) from None
