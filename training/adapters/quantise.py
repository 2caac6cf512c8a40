"""QLoRA's base: 4-bit weights through bitsandbytes, which needs a GPU. Written for GPUs; none has run it yet."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from transformers import BitsAndBytesConfig

from ..spec.lint import Problem, Refused
from ..spec.sections.method import Method


def quantisation(method: Method) -> BitsAndBytesConfig | None:
    """Return how the base is quantised while it is loaded; None where it is not. Raises Refused.

    The 4-bit values are stored in bf16 tensors, for FSDP shards no integers.
    """
    if method.kind != "qlora":
        return None
    if find_spec("bitsandbytes") is None:
        raise Refused(
            [Problem("method.kind", "bitsandbytes is not installed on this node", "Install it, or use lora.")]
        )
    return settings(method)


def settings(method: Method) -> BitsAndBytesConfig:
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=method.quantisation,
        bnb_4bit_use_double_quant=method.double_quantisation,
        bnb_4bit_compute_dtype=torch.bfloat16,
        bnb_4bit_quant_storage=torch.bfloat16,
    )


def check_plain(config: Any) -> None:
    """Raise Refused where the model folder itself is quantised: no whole weights to train or merge into."""
    found: dict[str, Any] | None = getattr(config, "quantization_config", None)
    if found:
        kind = found.get("quant_method", "of a kind it does not name")
        fix = "Name the unquantised model; qlora quantises it while loading."
        raise Refused([Problem("model", f"its folder holds quantised weights ({kind})", fix)])
