"""The tokenizer and the model, in fp32 or as the base of an adapter, and every choice of the recipe checked first."""

from __future__ import annotations

import difflib
from importlib.util import find_spec
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from .adapters.dtypes import base_dtype
from .adapters.quantise import check_plain, quantisation
from .cpu_fsdp import accelerator_present
from .spec.job import TrainJob
from .spec.lint import Problem, Refused
from .spec.recipe import Recipe
from .spec.sections.model import Model


def load_tokenizer(job: TrainJob) -> PreTrainedTokenizerBase:
    """Return the model's tokenizer; raise Refused where it can't render this data."""
    tokenizer = AutoTokenizer.from_pretrained(job.model, **_source(job))
    if job.recipe.data.template:
        tokenizer.chat_template = job.recipe.data.template
    if job.recipe.data.format == "messages" and not tokenizer.chat_template:
        raise Refused(
            [Problem("data.format", "the model's tokenizer has no chat template", "Choose a chat model, or text.")]
        )
    return tokenizer


def load_model(job: TrainJob, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Return the model on the host, in fp32 or as an adapter's base: whole on the first rank of a node, empty on others
    where loading is RAM-efficient.

    Call when the process group is up: the empty ranks are chosen by it. Raises Refused.
    """
    config = AutoConfig.from_pretrained(job.model, **_source(job))
    check_plain(config)
    _check_vocabulary(config, tokenizer)
    model = AutoModelForCausalLM.from_pretrained(
        job.model,
        config=config,
        dtype=base_dtype(job.recipe) if job.recipe.method.adapts else torch.float32,
        quantization_config=quantisation(job.recipe.method),
        attn_implementation=attention(job.recipe.model),
        **_source(job),
    )
    check_wrapping(job.recipe, model)
    return model


def _source(job: TrainJob) -> dict[str, Any]:
    return {"revision": job.revision or None, "trust_remote_code": job.recipe.model.trust_remote_code}


def attention(model: Model) -> str:
    """Return the attention kernel to use here."""
    if model.attention != "auto":
        return model.attention
    return "flash_attention_2" if accelerator_present() and find_spec("flash_attn") else "sdpa"


def _check_vocabulary(config: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    rows = config.get_text_config().vocab_size
    if len(tokenizer) > rows:
        raise Refused(
            [
                Problem(
                    "model",
                    f"the tokenizer has {len(tokenizer)} entries and the model {rows} rows",
                    "Resize the model's embeddings once, save it, and train that.",
                )
            ]
        )


def check_wrapping(recipe: Recipe, model: torch.nn.Module) -> None:
    """Raise Refused where the layer classes to wrap are not in the model."""
    if recipe.fsdp.wrap_policy == "SIZE_BASED_WRAP":
        return
    there = sorted({type(module).__name__ for module in model.modules()})
    wanted = recipe.fsdp.wrap_classes or tuple(getattr(model, "_no_split_modules", None) or ())
    if not wanted:
        raise Refused(
            [Problem("fsdp.wrap_classes", "the model does not name its layers", f"Name one of {', '.join(there)}.")]
        )
    if recipe.fsdp.wrap_classes and (missing := [name for name in wanted if name not in there]):
        near = difflib.get_close_matches(missing[0], there, n=1)
        fix = f"Did you mean {near[0]}?" if near else "Leave it empty: it is derived from the model."
        raise Refused([Problem("fsdp.wrap_classes", f"the model has no layer class {missing[0]}", fix)])
