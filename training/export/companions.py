"""The files beside the weights: config, generation config, tokenizer with its chat template."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, GenerationConfig

from ..adapters.names import CONFIG
from ..spec.job import ExportJob
from . import handed
from .adapted import config_for
from .outcome import refuse

GENERATION = "generation_config.json"


def load_tokenizer(job: ExportJob) -> Any:
    """Return the base model's tokenizer, with the chat template that was trained with.

    Raises Refused where there is none to read.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            job.model, revision=job.revision or None, trust_remote_code=job.trust_remote_code
        )
    except (OSError, ValueError) as error:
        line = str(error).strip().split("\n", 1)[0]
        raise refuse(
            "model", f"no tokenizer can be read from {job.model}: {line}", "Name a whole model folder."
        ) from error
    if job.template:
        tokenizer.chat_template = job.template
    return tokenizer


def write(job: ExportJob, config: Any, tokenizer: Any, folder: Path) -> None:
    """Write everything but weights into `folder`. An adapter alone has its own configuration in place of a model's."""
    handed.write_tokenizer(job, tokenizer, folder)
    if job.adapter == "adapter":
        text = json.dumps(config_for(job), indent=2, sort_keys=True)
        (folder / CONFIG).write_text(text + "\n", "utf-8")
        return
    config.dtype = job.dtype
    handed.write_config(job, config, folder)
    _generation(job, config, folder)
    if job.trust_remote_code:
        _code(Path(job.model), folder)


def _generation(job: ExportJob, config: Any, folder: Path) -> None:
    """Hand on the base's own file: some published ones hold what today's library refuses to save."""
    if path := handed.base_file(job, GENERATION):
        shutil.copyfile(path, folder / GENERATION)
    else:
        GenerationConfig.from_model_config(config).to_json_file(folder / GENERATION)


def _code(model: Path, folder: Path) -> None:
    """Copy the Python files that a local model folder brings: its config names them."""
    for path in sorted(model.glob("*.py")):
        shutil.copyfile(path, folder / path.name)
