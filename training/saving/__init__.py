"""Sharded training state on disk: written so that it counts only when whole, and gone on from exactly."""
