"""Load one model to answer, from this node's files alone."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM

from ..spec.lint import Problem, Refused
from .look import COPY, Known


def load(known: Known, device: str) -> Any:
    """Return the model on `device`, ready to generate. Raises Refused."""
    asked = known.asked
    where = {} if device == "cpu" else {"device_map": {"": device}}
    try:
        model = AutoModelForCausalLM.from_pretrained(
            known.folder,
            dtype=getattr(torch, known.dtype),
            local_files_only=True,
            trust_remote_code=asked.trust_remote_code,
            use_safetensors=True,
            **where,
        )
        if asked.adapter:
            from peft import PeftModel  # only needed here

            model = PeftModel.from_pretrained(model, asked.adapter, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        why = f"it can't be loaded: {' '.join(str(error).split())[:300]}"
        raise Refused([Problem(f"models.{asked.name}", why, COPY)]) from error
    return model.eval()
