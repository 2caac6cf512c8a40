"""The watch on runs, and what is sent of it."""
