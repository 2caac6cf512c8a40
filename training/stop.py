"""The request to stop: a file beside the events, as for training (spec.folder.JobFolder.stop)."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from .spec.folder import JobFolder


def heed(events: Path) -> None:
    """Raise SystemExit where the job that writes `events` was asked to stop."""
    if Path(JobFolder(PurePosixPath(events.parent)).stop).exists():
        raise SystemExit("stopped on request")
