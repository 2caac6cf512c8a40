"""Rows to tokens, each with the mark of whether it is trained.

messages            through the chat template, which brings its own special tokens
prompt-completion   both texts joined and tokenised as one; the completion begins where the tokens leave those of
                    the prompt alone (as TRL has it), and ends with the end token
text                as it is, ended with the end token
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..sections.data import Data
from .turns import Message, Span, Underivable, assistant_spans, covered

Row = dict[str, Any]
TAGS = re.compile(r"\{%-?\s*generation\s*-?%\}")  # as transformers looks for them
WAY_OUT = "Give data.template with {% generation %} tags around what the assistant says, or train on everything."


class Unencodable(ValueError):
    """A row that can't become tokens. `index`: its place among the rows given."""

    def __init__(self, index: int, reason: str, fix: str):
        self.index, self.reason, self.fix = index, reason, fix
        super().__init__(reason)


@dataclass(frozen=True)
class Encoded:
    """One row, whole. `trained`: a flag a token. `offsets`: each token's characters of `text`, where asked for."""

    ids: list[int]
    trained: list[bool]
    text: str = ""
    offsets: tuple[Span, ...] = ()


class Encoder:
    """Encodes rows as `data` says. `tokenizer`: one of transformers'. `shown`: with texts and offsets, to be shown."""

    def __init__(self, tokenizer: Any, data: Data, *, shown: bool = False):
        self.tokenizer, self.data, self.shown = tokenizer, data, shown
        self.template = data.template or tokenizer.chat_template
        self.end = str(tokenizer.eos_token or "")
        self._special = {self.end, *(str(t) for t in tokenizer.added_tokens_decoder.values() if t.special)}

    def __call__(self, rows: Sequence[Row]) -> list[Encoded]:
        """Return the rows encoded, in order. Raises Unencodable."""
        if self.data.format == "text":
            return self._whole([self._ended(row["text"]) for row in rows], special=True)
        if self.data.format == "prompt-completion":
            return self._pairs(rows)
        if self.data.train_on == "everything":
            return self._whole([self._render(n, row["messages"]) for n, row in enumerate(rows)], special=False)
        if not self.tokenizer.is_fast:
            fix = "Train on everything, or give the model a fast tokenizer (tokenizer.json)."
            raise Unencodable(0, "its slow tokenizer does not say which characters a token stands for", fix)
        return self._tagged(rows) if TAGS.search(str(self.template)) else self._derived(rows)

    def _ended(self, text: str) -> str:
        return text if text.endswith(self.end) else text + self.end

    def _whole(self, texts: list[str], *, special: bool) -> list[Encoded]:
        found = self._tokens(texts, special=special, offsets=self.shown)
        return [
            Encoded(ids, [True] * len(ids), text, offsets)
            for text, (ids, offsets) in zip(texts, found, strict=True)
        ]  # fmt: skip

    def _pairs(self, rows: Sequence[Row]) -> list[Encoded]:
        whole = self._whole([row["prompt"] + self._ended(row["completion"]) for row in rows], special=True)
        if self.data.train_on == "everything":
            return whole
        prompts = self._tokens([row["prompt"] for row in rows], special=True, offsets=False)
        starts = [_shared(prompt, row.ids) for (prompt, _), row in zip(prompts, whole, strict=True)]
        return [
            replace(row, trained=[n >= start for n in range(len(row.ids))])
            for row, start in zip(whole, starts, strict=True)
        ]

    def _derived(self, rows: Sequence[Row]) -> list[Encoded]:
        spans = [self._spans(n, row["messages"]) for n, row in enumerate(rows)]
        texts = [self._render(n, row["messages"]) for n, row in enumerate(rows)]
        return [
            Encoded(ids, covered(own, offsets), text, offsets)
            for text, own, (ids, offsets) in zip(
                texts, spans, self._tokens(texts, special=False, offsets=True), strict=True
            )
        ]

    def _spans(self, index: int, messages: Sequence[Message]) -> list[Span]:
        try:
            return assistant_spans(messages, lambda m, asked: self._render(index, m, asked), self._special)
        except Underivable as error:
            why = f"the assistant's tokens can't be told from the template, which has no generation tags: {error}"
            raise Unencodable(index, why, WAY_OUT) from None

    def _tagged(self, rows: Sequence[Row]) -> list[Encoded]:
        texts = [self._render(n, row["messages"]) for n, row in enumerate(rows)]  # names the row where one fails
        found = self.tokenizer.apply_chat_template(
            [row["messages"] for row in rows],
            chat_template=self.template,
            return_dict=True,
            return_assistant_tokens_mask=True,
            tokenizer_kwargs={"return_offsets_mapping": self.shown, "verbose": False},
        )
        offsets = found["offset_mapping"] if self.shown else [()] * len(texts)
        return [
            Encoded(ids, [flag == 1 for flag in mask], text, tuple(own))
            for ids, mask, text, own in zip(found["input_ids"], found["assistant_masks"], texts, offsets, strict=True)
        ]

    def _render(self, index: int, messages: Sequence[Message], asked: bool = False) -> str:
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    list(messages), chat_template=self.template, tokenize=False, add_generation_prompt=asked
                )
            )
        except Exception as error:  # noqa: BLE001  a template is the model's own program and raises what it likes
            why = f"the chat template refuses it: {' '.join(str(error).split())[:300]}"
            raise Unencodable(index, why, "Mend the row, choose another model, or give data.template.") from None

    def _tokens(self, texts: list[str], *, special: bool, offsets: bool) -> list[tuple[list[int], tuple[Span, ...]]]:
        """Return each text's tokens and, where asked, their characters."""
        found = self.tokenizer(
            texts,
            add_special_tokens=special,
            return_attention_mask=False,
            return_offsets_mapping=offsets,
            verbose=False,
        )
        spans = found["offset_mapping"] if offsets else [()] * len(texts)
        return [(list(ids), tuple(own)) for ids, own in zip(found["input_ids"], spans, strict=True)]


def _shared(ids: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens both begin with."""
    return next((n for n, (a, b) in enumerate(zip(ids, other, strict=False)) if a != b), min(len(ids), len(other)))
