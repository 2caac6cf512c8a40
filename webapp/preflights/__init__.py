"""Preflights: a grid of nodes against checks, asked for by a person or made before a launch."""
