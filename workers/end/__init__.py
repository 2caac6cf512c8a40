"""How a run ends: watched, stopped, proven gone, judged."""
