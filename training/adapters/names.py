"""PURE: what the tensors of an adapted model are called, live, in the base's files and in an adapter's folder.

live                                                    base's file                  adapter's folder
base_model.model.model.norm.weight                      model.norm.weight            -
base_model.model.lm_head.original_module.weight         lm_head.weight               -
base_model.model.lm_head.modules_to_save.default.weight lm_head.weight (first value) base_model.model.lm_head.weight
base_model.model.x.q_proj.base_layer.weight             x.q_proj.weight              -
base_model.model.x.q_proj.lora_A.default.weight         -                            ...x.q_proj.lora_A.weight
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "base_model.model."
CONFIG = "adapter_config.json"  # PEFT's names for the two files of its folder
WEIGHTS = "adapter_model.safetensors"
ADAPTER = "default"  # PEFT's name for the only adapter
FACTORS = ("lora_A", "lora_B")
WRAPPERS = ("_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module.")


def clean(name: str) -> str:
    """Return `name` without what FSDP1, torch.compile and activation checkpointing put into it."""
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def base_name(name: str) -> str | None:
    """Return what the base's files call the live tensor `name`; None where it is the adapter's own.

    A layer that is trained whole starts as a copy of the base's, so both of its tensors have a name there.
    """
    name = clean(name)
    if not name.startswith(PREFIX):
        return name
    name = name.removeprefix(PREFIX)
    if any(f".{factor}." in name for factor in FACTORS):
        return None
    for part in (".base_layer.", ".original_module.", f".modules_to_save.{ADAPTER}."):
        name = name.replace(part, ".")
    return name


def saved_name(name: str) -> str:
    """Return what PEFT's folder calls the adapter's live or stored tensor `name`; said twice, it is the same."""
    name = clean(name).replace(f".modules_to_save.{ADAPTER}.", ".")
    for factor in FACTORS:
        name = name.replace(f".{factor}.{ADAPTER}.", f".{factor}.")
    return name


@dataclass(frozen=True)
class Layers:
    """What an adapter holds: the two factors' saved names by the base tensor they change, and the layers
    trained whole by the base tensor they stand for."""

    factors: dict[str, tuple[str, str]]
    whole: dict[str, str]


def layers(saved: list[str]) -> Layers:
    """Sort the saved names of an adapter. Raises ValueError for a factor without its other."""
    factors: dict[str, tuple[str, str]] = {}
    whole: dict[str, str] = {}
    there = set(saved)
    for name in saved:
        target = name.removeprefix(PREFIX)
        if ".lora_A." in name:
            other = name.replace(".lora_A.", ".lora_B.")
            if other not in there:
                raise ValueError(f"{name} has no {other}")
            factors[target.replace(".lora_A.", ".")] = (name, other)
        elif ".lora_B." in name:
            if name.replace(".lora_B.", ".lora_A.") not in there:
                raise ValueError(f"{name} has no lora_A")
        else:
            whole[target] = name
    return Layers(factors, whole)
