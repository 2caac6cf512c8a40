"""The refusal of a checkpoint."""

from __future__ import annotations

from ..spec.lint import Refused


class BadCheckpoint(Refused):
    """A checkpoint that training can't go on from."""
