"""PURE: what chips can do at most, by the name that torch gives them.

Dense products in 16-bit floats with 32-bit accumulation, from the makers' data sheets, which often print twice as
much, for sparse matrices. What is not here has no known peak, and no utilisation is told for it.
"""

from __future__ import annotations

import re

# The first that is found in the name counts: the more special ones come first. FLOP/s.
PEAKS: tuple[tuple[str, float], ...] = (
    (r"\bGB200\b", 2500e12),
    (r"\bB200\b", 2250e12),
    (r"\bGH200\b", 989e12),
    (r"\bH200 NVL\b", 835e12),
    (r"\bH200\b", 989e12),
    (r"\bH[18]00 NVL\b", 835e12),
    (r"\bH[18]00 PCIe\b", 756e12),
    (r"\bH[18]00\b", 989e12),
    (r"\bH20\b", 148e12),
    (r"\bA[18]00\b", 312e12),
    (r"\bA40\b", 149.7e12),
    (r"\bA30\b", 165e12),
    (r"\bA10G\b", 70e12),
    (r"\bA10\b", 125e12),
    (r"\bL40S\b", 362e12),
    (r"\bL40\b", 181e12),
    (r"\bL4\b", 121e12),
    (r"\bV100S\b", 130e12),
    (r"\bV100-PCIE\b", 112e12),
    (r"\bV100\b", 125e12),
    (r"\bT4\b", 65e12),
    (r"\bRTX 6000 Ada\b", 364e12),
    (r"\bRTX A6000\b", 154.8e12),
    (r"\bRTX 5090\b", 209.5e12),
    (r"\bRTX 4090 D\b", 147.1e12),
    (r"\bRTX 4090\b", 165.2e12),
    (r"\bRTX 4080\b", 97.5e12),
    (r"\bRTX 3090\b", 71e12),
    (r"\bMI300X\b", 1307e12),
)
NO_BF16 = re.compile(r"\bV100|\bT4\b")  # it is emulated there, far below the peak
SLICE = re.compile(r"\bMIG\b")  # a part of a chip


def peak(name: str, dtype: str) -> float | None:
    """Return the most FLOP/s of the chip `name` in products of `dtype` (`bfloat16`, `float16`); None: not known."""
    if dtype not in ("bfloat16", "float16") or SLICE.search(name) or (dtype == "bfloat16" and NO_BF16.search(name)):
        return None
    return next((most for pattern, most in PEAKS if re.search(pattern, name)), None)
