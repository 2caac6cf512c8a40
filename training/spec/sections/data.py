"""What is read, what of it is trained on, and how rows become sequences of tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from .base import Section

ROLES = "`assistant` needs messages and `completion` needs prompt-completion; `everything` fits each format"


class Data(Section):
    train: str = Field("", max_length=1000, description="JSON Lines file of the rows. Empty: chosen beside the recipe.")
    test: str = Field("", max_length=1000, description="JSON Lines file to evaluate on. Empty: chosen beside, or none.")
    format: Literal["messages", "prompt-completion", "text"] = Field(
        "messages",
        description="`messages`: role/content turns through the chat template. `prompt-completion`: two texts."
        " `text`: ready-made text.",
    )
    text_field: str = Field(
        "content", pattern=r"^[^\x00-\x1f]{1,100}$", description="Column to read when format is text."
    )
    train_on: Literal["everything", "assistant", "completion"] = Field(
        "everything",
        description="Tokens that count in the loss: all, those of assistant turns, or those of the completion.",
    )
    template: str = Field(
        "", max_length=50_000, description="Jinja chat template to use in place of the tokenizer's own."
    )
    max_length: int = Field(1024, ge=16, le=131072, description="Tokens a row may have.")
    on_long: Literal["cut", "drop"] = Field("cut", description="What becomes of a row with more tokens than that.")
    untrained_rows: float = Field(
        0.1, ge=0, lt=1, description="Share of rows that may keep no trained token. With more the run is refused."
    )
    packing: bool = Field(False, description="Fill each row up to max_length with several samples.")
    packing_strategy: Literal["bfd", "wrapped"] = Field(
        "bfd",
        description="`bfd` packs whole samples, best fit decreasing, none seen by another. `wrapped` joins all and"
        " cuts at max_length: only for text.",
    )
    test_share: float = Field(
        0.0, ge=0, le=0.5, description="Share of the training rows held out for evaluation where there is no test file."
    )

    @model_validator(mode="after")
    def what_is_trained_is_there(self) -> Data:
        needs = {"assistant": "messages", "completion": "prompt-completion"}.get(self.train_on)
        if needs and self.format != needs:
            raise ValueError(f"train_on {self.train_on} does not go with format {self.format}: {ROLES}")
        if self.packing and self.packing_strategy == "wrapped" and self.format != "text":
            raise ValueError("packing_strategy wrapped lets samples see each other; set it to bfd, or format to text")
        return self

    @model_validator(mode="after")
    def what_is_given_is_read(self) -> Data:
        if self.format != "messages" and self.template:
            raise ValueError(f"template is not read with format {self.format}; leave it out, or set format to messages")
        if self.format != "text" and self.changed("text_field"):
            raise ValueError(f"text_field is not read with format {self.format}; leave it out, or set format to text")
        if not self.packing and self.changed("packing_strategy"):
            raise ValueError("packing_strategy is not read without packing; set packing to true, or leave it out")
        return self
