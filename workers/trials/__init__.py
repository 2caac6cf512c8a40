"""Trials: models that answer prompts on a node, never in the way of a training."""
