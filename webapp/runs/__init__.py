"""Runs, attempts, their journal, checkpoints and exports."""
