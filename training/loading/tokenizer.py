"""The model's tokenizer."""

from __future__ import annotations

from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused


def load_tokenizer(job: TrainJob) -> PreTrainedTokenizerBase:
    """Return the model's tokenizer; raise Refused where it can't render this data."""
    tokenizer = AutoTokenizer.from_pretrained(job.model, **source(job))
    if job.recipe.data.template:
        tokenizer.chat_template = job.recipe.data.template
    if job.recipe.data.format == "messages" and not tokenizer.chat_template:
        raise Refused(
            [Problem("data.format", "the model's tokenizer has no chat template", "Choose a chat model, or text.")]
        )
    return tokenizer


def source(job: TrainJob) -> dict[str, Any]:
    """Return what every `from_pretrained` of this job is told."""
    return {"revision": job.revision or None, "trust_remote_code": job.recipe.model.trust_remote_code}
