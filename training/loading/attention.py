"""Which attention kernel is used here, and what is lost where it is not the one that was hoped for."""

from __future__ import annotations

from importlib.util import find_spec

from ..cpu_fsdp import accelerator_present
from ..spec.lint import Problem, Refused
from ..spec.sections.model import Model

FLASH = "flash_attention_2"
LOST = (
    "Flash Attention 2 is not installed on this node, so attention runs as PyTorch's SDPA: the same result, with more"
    " memory and time the longer the rows; with packing, masks that keep samples apart cost both as well."
    " Install flash-attn to have it."
)


def attention(model: Model) -> str:
    """Return the attention kernel to use here. Raises Refused where the chosen one is not installed."""
    installed = find_spec("flash_attn") is not None
    if model.attention == FLASH and not installed:
        raise Refused([Problem("model.attention", "flash-attn is not installed here", "Install it, or choose auto.")])
    if model.attention != "auto":
        return model.attention
    return FLASH if accelerator_present() and installed else "sdpa"


def lost(model: Model) -> str:
    """Return what `auto` had to do without here, "" where nothing: on a CPU, SDPA is what there is."""
    return LOST if model.attention == "auto" and accelerator_present() and attention(model) != FLASH else ""
