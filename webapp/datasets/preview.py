"""The first rows of a data set as training reads them: through the chat template, with what is trained marked.

Tokens and their marks are made by the code that training uses; what lies beyond max_length is cut. Template and
tokens come from the model's own files on this host: no torch is imported, no code of the model's is run, nothing is
fetched.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from training.spec.lint import Problem, Refused
from training.spec.sections.data import Data
from training.spec.tokens.encode import Encoded, Encoder, Unencodable
from webapp.runs.models import ModelSource

from .models import Version

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LONGEST = 20_000  # characters of a row that are given out; a page is no place for a megabyte
FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@dataclass(frozen=True)
class Piece:
    """A run of a row's text. `kind`: trained; given, which the model sees and is not trained to say; cut."""

    kind: str
    text: str


@dataclass(frozen=True)
class Rendered:
    """One row, up to LONGEST characters. `tokens`: of the whole row. `trained_tokens`: those that are trained."""

    number: int
    pieces: tuple[Piece, ...]
    tokens: int
    trained_tokens: int

    def text(self, kind: str) -> str:
        """Return the text of one kind."""
        return "".join(piece.text for piece in self.pieces if piece.kind == kind)

    @property
    def trained(self) -> str:
        return self.text("trained")

    @property
    def cut(self) -> str:
        return self.text("cut")


def render_rows(
    version: Version, model: ModelSource, count: int, max_length: int = 1024, train_on: str = "everything"
) -> list[Rendered]:
    """Return the first `count` rows; raise Refused where the tokenizer is not here or can't take the rows."""
    data, tokenizer = _data(version, train_on), _tokenizer(model)
    if data.format == "messages" and not tokenizer.chat_template:
        raise Refused([Problem("model", "it has no chat template", "Choose one that has, or a data set of text.")])
    encoder = Encoder(tokenizer, data, shown=True)
    rows = enumerate(first_rows(version, count), 1)
    return [_rendered(number, _encoded(encoder, number, row), max_length) for number, row in rows]


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


def _data(version: Version, train_on: str) -> Data:
    try:
        return Data.model_validate({"format": version.format, "train_on": train_on})
    except ValidationError:
        choices = " or ".join(trained_choices(version))
        why = f"rows of {version.format} can't be trained on {train_on[:30]!r} alone"
        raise Refused([Problem("train_on", why, f"Choose {choices}.")]) from None


def trained_choices(version: Version) -> list[str]:
    """Return what rows of this format can be trained on."""
    more = {"messages": ["assistant"], "prompt-completion": ["completion"]}
    return ["everything", *more.get(version.format, [])]


def _as_read(row: dict[str, Any]) -> dict[str, Any]:
    """Return a stored row under the names that training reads it by."""
    return row if "messages" in row or "prompt" in row else {"text": next((str(value) for value in row.values()), "")}


def _encoded(encoder: Encoder, number: int, row: dict[str, Any]) -> Encoded:
    try:
        return encoder([_as_read(row)])[0]
    except Unencodable as error:
        raise Refused([Problem("model", f"row {number}: {error.reason}", error.fix)]) from None


def _rendered(number: int, row: Encoded, max_length: int) -> Rendered:
    flags = row.trained[:max_length]
    pieces = _pieces(row, flags)
    seen = sum(len(piece.text) for piece in pieces)
    # what no token stands for, at the end, belongs to the last one
    rest = Piece("cut" if len(row.ids) > max_length else pieces[-1].kind if pieces else "given", row.text[seen:])
    return Rendered(number, _shortened([*pieces, rest]), len(row.ids), sum(flags))


def _pieces(row: Encoded, flags: list[bool]) -> list[Piece]:
    """Return the text under the first tokens, in runs that are trained or only given."""
    ends = accumulate((end for _, end in row.offsets), max)  # several tokens of one character end alike
    pieces, at = [], 0
    for flag, run in groupby(zip(flags, ends, strict=False), key=lambda pair: pair[0]):
        *_, (_, end) = run
        pieces.append(Piece("trained" if flag else "given", row.text[at:end]))
        at = end
    return pieces


def _shortened(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Return the pieces that have text, up to LONGEST characters of all."""
    left, out = LONGEST, []
    for piece in pieces:
        if text := piece.text[:left]:
            out.append(Piece(piece.kind, text))
            left -= len(text)
    return tuple(out)
