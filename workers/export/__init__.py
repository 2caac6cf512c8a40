"""Exports: jobs of one node (workers.nodejob), each of one checkpoint."""
