"""The stated rule for number formats of a base and the adapter beside it.

Under FSDP2 the adapter has the master weights' and the base, which no optimizer moves, that of the forward pass.
FSDP1 makes one flat tensor of a wrap unit and takes one format only, and so does a 4-bit base: there base and
adapter have one, and the first parameter that differs is named.
"""

from __future__ import annotations

import torch

from ..spec.lint import Problem, Refused
from ..spec.recipe import Recipe

COMPUTE = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def adapter_dtype(recipe: Recipe) -> torch.dtype:
    """Return the number format of what is trained."""
    if recipe.method.kind == "qlora":
        return torch.bfloat16  # that of the 4-bit base's storage: one wrap unit, one format
    return torch.float32 if recipe.master_weights == "fp32" else torch.bfloat16


def base_dtype(recipe: Recipe) -> torch.dtype:
    """Return the number format that the frozen base is loaded in.

    Under FSDP2 that of the forward pass: cast once in place of each time it gives the same numbers in half the
    memory. Under FSDP1 the adapter's.
    """
    return COMPUTE[recipe.precision] if recipe.fsdp.version == 2 else adapter_dtype(recipe)


def check_one_dtype(model: torch.nn.Module) -> None:
    """Raise Refused naming the first parameter whose number format is not that of the first."""
    parameters = [(name, p) for name, p in model.named_parameters() if p.is_floating_point()]
    first, wanted = parameters[0][0], parameters[0][1].dtype
    odd = next(((name, p.dtype) for name, p in parameters if p.dtype != wanted), None)
    if odd:
        reason = f"{odd[0]} is {odd[1]} and {first} is {wanted}: FSDP1 takes one number format in a wrap unit"
        raise Refused([Problem("fsdp.version", reason, "Set fsdp.version to 2.")])
