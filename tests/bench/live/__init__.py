"""The live view, measured: what is asked of it, and whether it holds."""
