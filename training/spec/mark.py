"""The name that marks a job's processes. By itself: whoever only looks for processes must not wait for the recipe."""

from __future__ import annotations

# Carries the job's folder in the environment of each of its processes, so that every one can be found.
MARK = "SHARDBOARD_JOB"
