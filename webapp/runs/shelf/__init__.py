"""The catalogue of checkpoints: where each lies, what it is good for, what its deletion would take."""
