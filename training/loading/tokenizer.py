"""The model's tokenizer."""

from __future__ import annotations

from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused


def load_tokenizer(job: TrainJob) -> PreTrainedTokenizerBase:
    """Return the model's tokenizer; raise Refused where there is none or it can't render this data."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(job.model, **source(job))
    except Exception as error:  # a torn config or tokenizer raises whatever it comes across
        why = f"its config or tokenizer can't be read: {' '.join(str(error).split())[:300]}"
        raise Refused([Problem("model", why, "Copy the model again, whole, or name another.")]) from error
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
