"""What mixed precision leaves in fp32: the loss, and the sum of gradients over ranks.

accelerate's policy for FSDP2 casts every unit's output to the compute dtype. The last unit's output are the tokens'
log-probabilities, and their sum in bf16 has three digits: seen was a loss of 8.2917 where fp32 has 8.2987, and steps
off by half a percent; left as computed it is 8.2991. Gradients summed over ranks in bf16 lose what small ones add.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch


def keep_sums_exact(plugin: Any) -> None:
    """Set accelerate's FSDP2 plugin so. Call before the model is prepared; nothing to do without mixed precision.

    FSDP1's outputs are not cast, and its gradients are summed as the reference has it: in the compute dtype.
    """
    policy = plugin.mixed_precision_policy
    if plugin.fsdp_version == 2 and policy is not None:
        plugin.mixed_precision_policy = dataclasses.replace(policy, reduce_dtype=torch.float32, output_dtype=None)
