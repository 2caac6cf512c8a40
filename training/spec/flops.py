"""PURE: how many floating-point operations training a token takes.

Model FLOPs as in appendix B of "PaLM: Scaling Language Modeling with Pathways" (Chowdhery et al., 2022): per token 6
for each parameter in a matrix product (2 forward, 4 backward) and 12 L H Q T for attention over a sample of T tokens
(L layers, H heads of size Q), causal or not. What is not counted: activations computed a second time for activation
checkpointing, padding, lookups, norms. So a utilisation of these is MFU, not the hardware's (HFU).

A frozen weight has no gradient of its own, which is half of its backward pass: 4 in place of 6.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What a model asks for. `trained`, `frozen`: parameters in matrix products. `attention`: L x H x Q."""

    trained: int
    frozen: int
    attention: int

    def flops(self, tokens: float, squares: float) -> float:
        """Return the FLOPs of one forward and backward pass over samples.

        `tokens`: of all samples together; `squares`: the sum of each sample's tokens squared.
        """
        return (6 * self.trained + 4 * self.frozen) * tokens + 12 * self.attention * squares
