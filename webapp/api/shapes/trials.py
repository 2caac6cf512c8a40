"""How a trial looks outside."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, Schema
from pydantic import ConfigDict, StrictFloat, StrictInt, StrictStr

from training.spec.answer import CHARACTERS, MODELS, PROMPTS, SECONDS, TOKENS
from webapp.trials.models import Answer, Trial


class TurnIn(Schema):
    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant"]
    content: StrictStr = Field(max_length=CHARACTERS)


class PromptIn(Schema):
    """Either a text, which is a user's turn where the run's rows are chats; or a chat of its own."""

    model_config = ConfigDict(extra="forbid")

    text: StrictStr | None = Field(None, max_length=CHARACTERS)
    messages: list[TurnIn] | None = None


class NewTrial(Schema):
    model_config = ConfigDict(extra="forbid")

    prompts: list[PromptIn] = Field(min_length=1, max_length=PROMPTS)
    models: list[StrictInt | Literal["base"]] = Field(
        min_length=1, max_length=MODELS, description="`base`, and ids of the run's ready exports."
    )
    max_new_tokens: StrictInt = Field(256, ge=1, le=TOKENS)
    temperature: StrictFloat | StrictInt = Field(0.0, ge=0, le=5, description="0: always the likeliest token.")
    top_p: StrictFloat | StrictInt = Field(1.0, gt=0, le=1)
    seed: StrictInt = Field(0, ge=0, lt=2**31)
    seconds: StrictFloat | StrictInt = Field(120.0, ge=1, le=SECONDS, description="For all answers, loading included.")

    def sampling(self) -> dict[str, Any]:
        return self.model_dump(include={"max_new_tokens", "temperature", "top_p", "seed"})


class AnswerOut(Schema):
    """`model` and `prompt`: which of the trial's, by index. `stopped_by` is empty while it is on its way."""

    model: int
    prompt: int
    export: int | None
    text: str
    tokens: int
    seconds: float | None
    tokens_per_second: float | None
    first_token_seconds: float | None
    stopped_by: str

    @classmethod
    def of(cls, row: Answer) -> AnswerOut:
        names = [name for name in cls.model_fields if name != "export"]
        return cls(export=row.export_id, **{name: getattr(row, name) for name in names})


class TrialOut(Schema):
    """`kind`: `ask`, or `fixed` for the recipe's own prompts. `models`: {name, export} and what its node said of it."""

    id: int
    run: int
    kind: str
    state: str
    reason: str
    reason_text: str
    node: str | None
    models: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    sampling: dict[str, Any]
    seconds: float
    answers: list[AnswerOut]
    requested_by: str | None
    created_at: datetime
    ended_at: datetime | None
    url: str
    page: str

    @classmethod
    def of(cls, row: Trial, request: HttpRequest) -> TrialOut:
        same = ("id", "kind", "state", "reason", "reason_text", "prompts", "sampling", "seconds")
        return cls(
            run=row.told_in.run_id,
            node=row.node.name if row.node else None,
            models=row.asked,
            answers=[AnswerOut.of(answer) for answer in row.answers.all()],
            requested_by=row.requested_by.get_username() if row.requested_by else None,
            created_at=row.created_at,
            ended_at=row.ended_at,
            url=request.build_absolute_uri(reverse("api:trial", args=[row.pk])),
            page=request.build_absolute_uri(row.get_absolute_url()),
            **{name: getattr(row, name) for name in same},
        )
