"""The first rows of a data set as training reads them: through the chat template, with what is trained marked.

Every token of a row is trained, up to the recipe's max_length; what lies beyond is cut. Template and tokens come
from the model's own files on this host: no torch is imported, no code of the model's is run, nothing is fetched.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.spec.lint import Problem, Refused
from webapp.runs.models import ModelSource

from .models import Version

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LONGEST = 20_000  # characters of a row that are given out; a page is no place for a megabyte
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@dataclass(frozen=True)
class Rendered:
    """One row: `trained` and then `cut` are its text, up to LONGEST characters. `tokens`: of the whole row."""

    number: int
    trained: str
    cut: str
    tokens: int


def render_rows(version: Version, model: ModelSource, count: int, max_length: int = 1024) -> list[Rendered]:
    """Return the first `count` rows; raise Refused where the tokenizer is not here or can't take the rows."""
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


def _tokenizer(model: ModelSource) -> PreTrainedTokenizerFast:
    folder = Path(model.location)
    if not folder.is_absolute():
        return _loaded(model.location, model.revision, ())
    if not folder.is_dir():
        raise _not_here(f"there is no folder {folder}")
    if not (folder / FILES[0]).is_file():
        raise _not_here(f"{folder} holds no {FILES[0]}")
    return _loaded(model.location, "", tuple(_stamp(folder / name) for name in FILES))


def _stamp(path: Path) -> int:
    """Tell a file from another that stood under its name."""
    return path.stat().st_mtime_ns if path.is_file() else 0


def _not_here(why: str) -> Refused:
    fix = "Choose a model whose folder this host can read."
    return Refused([Problem("model", f"its tokenizer is not on this host: {why}", fix)])


@lru_cache(maxsize=4)
def _loaded(location: str, revision: str, stamps: tuple[int, ...]) -> PreTrainedTokenizerFast:
    # Takes a second and 60 MB, so not before it is needed; AutoTokenizer would import torch where there is one.
    from transformers import PreTrainedTokenizerFast

    try:
        return PreTrainedTokenizerFast.from_pretrained(location, revision=revision or "main", local_files_only=True)
    except OSError as error:
        raise _not_here(f"{location} is not cached" if not stamps else str(error)) from None
    except Exception as error:  # noqa: BLE001  tokenizers raises Exception itself for a file that it can't read
        fix = "Put the model's files there again."
        raise Refused([Problem("model", f"its tokenizer can't be read: {str(error)[:300]}", fix)]) from None


def _rendered(tokenizer: PreTrainedTokenizerFast, number: int, row: dict[str, Any], max_length: int) -> Rendered:
    """A text gets the tokenizer's special tokens, a rendered chat has them from its template: as in training."""
    text = _text(tokenizer, row)
    found = tokenizer(text, add_special_tokens="messages" not in row, return_offsets_mapping=True)
    ends = [end for _, end in found["offset_mapping"]]
    end = max(ends[:max_length]) if len(ends) > max_length else len(text)
    return Rendered(number, text[: min(end, LONGEST)], text[end : max(end, LONGEST)], len(ends))


def _text(tokenizer: PreTrainedTokenizerFast, row: dict[str, Any]) -> str:
    if "messages" not in row:
        return _ended(next((str(value) for value in row.values()), ""), str(tokenizer.eos_token or ""))
    if not tokenizer.chat_template:
        raise Refused([Problem("model", "it has no chat template", "Choose one that has, or a data set of text.")])
    try:
        return str(tokenizer.apply_chat_template(row["messages"], tokenize=False))
    except Exception as error:  # noqa: BLE001  a template is the model's own program and raises what it likes
        raise Refused(
            [Problem("model", f"its chat template refuses a row: {error}", "Choose another model, or mend the rows.")]
        ) from None


def _ended(text: str, end: str) -> str:
    """Training ends a text with the end token, where it isn't there."""
    return text if text.endswith(end) else text + end
