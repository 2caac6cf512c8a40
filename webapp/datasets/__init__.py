"""Data sets: versions by content hash."""
