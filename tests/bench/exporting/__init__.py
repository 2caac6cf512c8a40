"""Time and memory of the ways from a sharded checkpoint to a model's files."""
