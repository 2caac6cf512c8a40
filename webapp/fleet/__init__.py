"""Clusters, nodes, SSH identities, and what a check found."""
