"""What nodes write, line by line into rows: `python -m workers.follow`."""
