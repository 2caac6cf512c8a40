"""What a run's exports and its base are asked, to be compared: kept with the run.

A prompt is a text, which is a user's turn where rows are chats and goes on as it stands where they are not; or it is
a chat of its own.
"""

from __future__ import annotations

from pydantic import Field

from ..answer import TOKENS, Turn, Words
from .base import Section

MOST = 20


class Prompts(Section):
    ask: tuple[Words | tuple[Turn, ...], ...] = Field(
        (), max_length=MOST, description="Up to 20 texts, or chats, whose answers by base and exports are kept."
    )
    max_new_tokens: int = Field(128, ge=1, le=TOKENS, description="Tokens an answer may have. They are the likeliest.")
    seconds: int = Field(
        1800, ge=10, le=3600, description="Seconds for all answers of one export and its base together."
    )
