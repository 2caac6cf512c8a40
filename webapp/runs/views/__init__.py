"""Pages of runs: one file a page."""
