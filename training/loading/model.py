"""The model of a job, and its weights' way into the shards.

Where each rank can read slices, or rank 0 sends them, the model comes back without weights, and accelerate's
`prepare` fills the shards by our source. Otherwise transformers has loaded it whole, as FSDP1 needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import fsdp_utils
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..adapters.dtypes import base_dtype
from ..adapters.quantise import check_plain, quantisation
from ..ranks import Ranks
from ..same import MODEL, check_same
from ..spec.job import TrainJob
from ..spec.lint import Problem, Refused
from ..spec.recipe import Recipe
from .attention import attention
from .broadcast import FromHead
from .checks import check_vocabulary, check_wrapping
from .choice import Choice, Way, choose, fall_back
from .empty import empty_model
from .equal import check_equal
from .fits import check_fits
from .identity import CONFIG, config_digest, model_digest
from .names import check_keys, placed
from .shards import Source, fill
from .slices import Slices
from .stored import Stored, Unfit, stored_in
from .timing import Timing
from .together import together
from .tokenizer import source

# What accelerate reads when it makes its FSDP plugin: with it, `prepare` shards on meta and asks for the weights.
RAM_EFFICIENT = "FSDP_CPU_RAM_EFFICIENT_LOADING"


@dataclass(frozen=True)
class Loaded:
    """A model and how its weights get there. `timing` has it all when the model is sharded.

    `identity`: which base model it is, as the first rank sees it.
    """

    model: PreTrainedModel
    choice: Choice
    timing: Timing
    identity: str


def load_model(job: TrainJob, tokenizer: PreTrainedTokenizerBase, ranks: Ranks) -> Loaded:
    """Return the model on the host, to be prepared by accelerate: its weights are right only after that.

    `job.model` is a folder. Call on every rank, when the process group is up. Raises Refused on all ranks alike.
    """
    timing = Timing()
    config = together(ranks, lambda: _checked_config(job, tokenizer))
    check_same({MODEL: together(ranks, lambda: _config_of(job))}, ranks)
    choice = choose(job, ranks)
    identity = together(ranks, lambda: model_digest(Path(job.model)) if ranks.is_main else "")
    if choice.way != Way.ACCELERATE:
        try:
            model = timing.spent_in(lambda: _without_weights(job, config, choice.way, ranks, timing))
            return Loaded(model, choice, timing, identity)
        except Unfit as error:
            choice = fall_back(job, str(error))
    check_same({MODEL: together(ranks, lambda: model_digest(Path(job.model)))}, ranks)  # each node reads its own
    _time_accelerates(timing)
    return Loaded(timing.spent_in(lambda: _by_the_library(job, config, ranks)), choice, timing, identity)


def _checked_config(job: TrainJob, tokenizer: PreTrainedTokenizerBase) -> Any:
    try:
        config = AutoConfig.from_pretrained(job.model, **source(job))
    except ValueError as error:  # of no kind that is known, or one that brings its own code
        why = f"its config can't be read: {' '.join(str(error).split())[:300]}"
        raise Refused([Problem("model", why, "Copy the model again, whole, or name another.")]) from error
    check_plain(config)
    check_vocabulary(config, tokenizer, job.model)
    return config


def _config_of(job: TrainJob) -> str:
    return f"{CONFIG} {config_digest(Path(job.model), code=job.recipe.model.trust_remote_code)}"


def dtype(recipe: Recipe) -> torch.dtype:
    """Return the number format that the weights are loaded in: the masters', or that of an adapter's frozen base."""
    if recipe.method.adapts:
        return base_dtype(recipe)
    return torch.bfloat16 if recipe.master_weights == "bf16" else torch.float32


def _by_the_library(job: TrainJob, config: Any, ranks: Ranks) -> PreTrainedModel:
    """Return the model as accelerate's own loading wants it: whole on the first rank of each node at least.

    FSDP1 sends the first rank's weights to the others at wrap time. transformers 5 used to leave theirs empty and
    now reads them whole on every rank, for nothing; so they are left empty here.
    """
    check_fits(together(ranks, lambda: _bare(job, config)), job.recipe, Way.ACCELERATE, ranks)
    empty = together(ranks, lambda: _empty_for_fsdp1(job, config))
    return together(ranks, lambda: _whole(job, config) if ranks.is_local_main or empty is None else empty)


def _empty_for_fsdp1(job: TrainJob, config: Any) -> PreTrainedModel | None:
    fsdp = job.recipe.fsdp
    if fsdp.version != 1 or not (fsdp.ram_efficient_loading and fsdp.sync_module_states):
        return None
    if job.recipe.method.kind == "qlora":
        return None
    try:
        return _empty(job, config)
    except Unfit:
        return None


def _whole(job: TrainJob, config: Any) -> PreTrainedModel:
    model, told = AutoModelForCausalLM.from_pretrained(
        job.model,
        config=config,
        dtype=dtype(job.recipe),
        quantization_config=quantisation(job.recipe.method),
        attn_implementation=attention(job.recipe.model),
        output_loading_info=True,
        **source(job),
    )
    check_keys(model, told["missing_keys"], told["unexpected_keys"])
    return model


def _without_weights(job: TrainJob, config: Any, way: Way, ranks: Ranks, timing: Timing) -> PreTrainedModel:
    """Return the empty model, its weights on call. Raises Unfit and Refused on all ranks alike."""
    model = together(ranks, lambda: _empty(job, config))
    check_fits(model, job.recipe, way, ranks)
    if way == Way.SLICES:
        found: Source = Slices(together(ranks, lambda: placed(model, stored_in(Path(job.model)))))
    else:
        found = FromHead(_placed_by_head(job, model, ranks), ranks)

    def load(sharded: Any, originals: dict[str, torch.Tensor], on_host: bool) -> None:
        fresh = timing.spent_in(lambda: fill(sharded, originals, found, on_host=on_host))
        check_equal(fresh, ranks, "fresh tensor")

    in_place_of_accelerate(load)
    return model


def _empty(job: TrainJob, config: Any) -> PreTrainedModel:
    """Return the model as its weights will be read into it. Raises Unfit, Refused."""
    model = _bare(job, config)
    if model._get_dtype_plan(dtype(job.recipe)):
        raise Unfit("the model keeps some layers in fp32 whatever it is told")
    if (Path(job.model) / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(job.model)
    return model


def _bare(job: TrainJob, config: Any) -> PreTrainedModel:
    model = empty_model(
        config,
        dtype=dtype(job.recipe),
        attention=attention(job.recipe.model),
        remote_code=job.recipe.model.trust_remote_code,
    )
    check_wrapping(job.recipe, model)
    return model


def _placed_by_head(job: TrainJob, model: PreTrainedModel, ranks: Ranks) -> dict[str, Stored]:
    def look() -> dict[str, Stored]:
        return placed(model, stored_in(Path(job.model))) if ranks.is_main else {}

    return ranks.gather(together(ranks, look))[0]


def in_place_of_accelerate(load: Callable[[Any, dict[str, torch.Tensor], bool], None]) -> None:
    """Have `load` fill the models that accelerate shards from now on: `load(model, originals, on_host)`."""

    def fsdp2_load_full_state_dict(
        accelerator: Any, model: Any, full_sd: dict[str, torch.Tensor], cpu_offload: bool = False
    ) -> Any:
        load(model, full_sd, cpu_offload)
        return model

    os.environ[RAM_EFFICIENT] = "true"
    fsdp_utils.fsdp2_load_full_state_dict = fsdp2_load_full_state_dict


def _time_accelerates(timing: Timing) -> None:
    """Have accelerate's own filling of shards under FSDP2 counted as loading."""
    own = fsdp_utils.fsdp2_load_full_state_dict
    fsdp_utils.fsdp2_load_full_state_dict = lambda *args, **options: timing.spent_in(lambda: own(*args, **options))
