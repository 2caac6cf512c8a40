"""Runs in the admin: one file for what is asked for, one for what happened."""

from . import records, runs

__all__ = ["records", "runs"]
