"""Trials: prompts that a run's base and exports answer side by side, on the node that holds them."""
