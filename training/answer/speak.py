"""One answer: token by token, the same for the same seed, ended by whatever ends it first."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from ..spec.answer import Sampling
from .course import EOS, LENGTH, Course, Said
from .limits import Limits
from .look import Known
from .pieces import Pieces


def speak(model: Any, known: Known, ids: list[int], sampling: Sampling, course: Course, limits: Limits) -> Said:
    """Let `model` go on after the tokens `ids`; pieces are told on the way."""
    ends = end_tokens(model, known.tokenizer)
    # Ours alone: what a model brings of its own (a repetition penalty, a temperature) would make models unlike.
    model.generation_config = _config(sampling, ends, known.tokenizer)
    pieces = Pieces(known.tokenizer, course.piece, limits.clock)
    until = Until(limits)
    asked = torch.tensor([ids], device=model.device)
    torch.manual_seed(sampling.seed)
    began = limits.clock()
    with torch.inference_mode():
        model.generate(
            input_ids=asked,
            attention_mask=torch.ones_like(asked),
            streamer=pieces,
            stopping_criteria=StoppingCriteriaList([until]),
        )
    seconds = limits.clock() - began
    by = EOS if pieces.ids and pieces.ids[-1] in ends else ""
    by = by or (LENGTH if len(pieces.ids) >= sampling.max_new_tokens else until.why)
    first = None if pieces.first_at is None else pieces.first_at - began
    return Said(pieces.text(), len(pieces.ids), seconds, first, by)


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end an answer: those that the model names, and its tokenizer's."""
    named = model.generation_config.eos_token_id if model.generation_config else None
    found = [named] if isinstance(named, int) else list(named or [])
    own = tokenizer.eos_token_id
    return found if own is None or own in found else [*found, own]


def _config(sampling: Sampling, ends: list[int], tokenizer: Any) -> GenerationConfig:
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(ends), 0)
    how: dict[str, Any] = {"do_sample": False}
    if sampling.temperature > 0:
        how = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    return GenerationConfig(
        max_new_tokens=sampling.max_new_tokens, eos_token_id=ends or None, pad_token_id=pad, use_cache=True, **how
    )


class Until(StoppingCriteria):
    """Asked after each token whether a limit is reached."""

    def __init__(self, limits: Limits):
        self.limits, self.why = limits, ""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        self.why = self.limits.why_this()
        return torch.full((input_ids.shape[0],), bool(self.why), dtype=torch.bool, device=input_ids.device)
