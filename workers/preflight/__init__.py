"""Preflight: nodes against checks, on demand (`demand`), before a launch (`launch`), and of one node alone (`node`)."""
