"""Tokens as they come, told as text in small batches that never cut a character in two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers.generation.streamers import BaseStreamer

EVERY_SECONDS = 0.2
HALF = "\N{REPLACEMENT CHARACTER}"  # what the bytes of a character decode to before the last of them is there


class Pieces(BaseStreamer):
    """`tell(text, tokens)` gets what is new, at most every EVERY_SECONDS; the first token's at once.

    All tokens are decoded anew each time: what one says may depend on the one before, as a word's first space does.
    """

    def __init__(self, tokenizer: Any, tell: Callable[[str, int], None], clock: Callable[[], float]):
        self.tokenizer, self.tell, self.clock = tokenizer, tell, clock
        self.ids: list[int] = []
        self.first_at: float | None = None
        self._prompt_is_over = False
        self._sent, self._told_at = "", 0.0

    def put(self, value: Any) -> None:
        """Take the prompt, which comes first, then each token."""
        if not self._prompt_is_over:
            self._prompt_is_over = True
            return
        self.ids += value.flatten().tolist()
        now = self.clock()
        if self.first_at is None:
            self.first_at = now
        if not self._sent or now - self._told_at >= EVERY_SECONDS:
            self._say(self.text().rstrip(HALF))

    def end(self) -> None:
        self._say(self.text())

    def text(self) -> str:
        """Return all of the answer so far, without special tokens."""
        decoded = self.tokenizer.decode(self.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(decoded)

    def _say(self, text: str) -> None:
        # A text that changed where it was told already is put right by the whole answer at the end.
        if len(text) > len(self._sent) and text.startswith(self._sent):
            new, self._sent, self._told_at = text[len(self._sent) :], text, self.clock()
            self.tell(new, len(self.ids))
