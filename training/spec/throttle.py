"""Why a GPU's clocks are below their highest: NVML's bits in words. Names are NVML's nvmlClocksEventReason*."""

from __future__ import annotations

# idle, clocks that somebody set, and the display's are no slowing down; they have no words
WORDS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "held to the slowest of a group",
    0x020: "heat",
    0x040: "heat, by the hardware",
    0x080: "power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}


def words(bits: object) -> list[str]:
    """Return why a GPU is slower than it could be; nothing where it isn't, or where that isn't known."""
    return [text for bit, text in WORDS.items() if isinstance(bits, int) and bits & bit]
