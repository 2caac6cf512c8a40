"""What a trial asks of models: which, what, and within what limits. Read by `python -m training answer JOB.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MODELS, PROMPTS, TOKENS, SECONDS = 4, 20, 1024, 3600
CHARACTERS = 100_000  # of one turn or text


def _whole(text: str) -> str:
    """PostgreSQL holds no NUL, and a turn that says nothing is a mistake."""
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    if not text.strip():
        raise ValueError("it is empty")
    return text


Words = Annotated[str, Field(max_length=CHARACTERS), AfterValidator(_whole)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Turn(Part):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: Words


class Prompt(Part):
    """What is asked: a chat, through each model's own chat template, or a text that is gone on with."""

    messages: tuple[Turn, ...] = Field((), max_length=100)
    text: str = Field("", max_length=CHARACTERS)

    @model_validator(mode="after")
    def one_of_both(self) -> Prompt:
        if bool(self.messages) == bool(self.text):
            raise ValueError("give either messages or text")
        if self.text:
            _whole(self.text)
        return self


def as_rows(asked: Sequence[str | tuple[Turn, ...]], data_format: str) -> tuple[Prompt, ...]:
    """Return prompts as rows of `data_format` are read: of chats a text is a user's turn, else it goes on."""

    def one(prompt: str | tuple[Turn, ...]) -> Prompt:
        if not isinstance(prompt, str):
            return Prompt(messages=prompt)
        chat = data_format == "messages"
        return Prompt(messages=(Turn(role="user", content=prompt),)) if chat else Prompt(text=prompt)

    return tuple(map(one, asked))


class Asked(Part):
    """A model that answers."""

    name: str = Field(min_length=1, max_length=200, description="How it is called in what is said of it.")
    model: str = Field(min_length=1, description="Model folder on this node, or a hub id that this node has.")
    revision: str = ""
    adapter: str = Field("", description="Folder of an adapter that is laid over it; its tokenizer, where it has one.")
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field("auto", description="auto: as the model has it.")
    trust_remote_code: bool = False
    template: str = Field("", description="Chat template for a model whose tokenizer brings none.")


class Sampling(Part):
    """How tokens are chosen: alike for every model, whatever its own generation config has."""

    max_new_tokens: int = Field(256, ge=1, le=TOKENS)
    temperature: float = Field(0.0, ge=0, le=5, description="0: always the likeliest token.")
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(0, ge=0, lt=2**31)


class AnswerJob(Part):
    """recipe.json of a trial. Models answer in turn, one in memory at a time."""

    models: tuple[Asked, ...] = Field(min_length=1, max_length=MODELS)
    prompts: tuple[Prompt, ...] = Field(min_length=1, max_length=PROMPTS)
    sampling: Sampling = Sampling()
    seconds: float = Field(
        300.0, gt=0, le=SECONDS, description="For all answers, loading included; each has its share of what is left."
    )
    device: Literal["auto", "cpu"] = Field("auto", description="auto: a GPU with enough free memory, else the CPU.")
    threads: int = Field(0, ge=0, le=1024, description="CPU threads; 0: one for each core that it may use.")
    reserve: float = Field(0.0, ge=0, lt=1, description="Share of the host's memory that has to stay free.")
    nice: int = Field(10, ge=0, le=19, description="How far it stands back behind other processes of the node.")
    events: str
