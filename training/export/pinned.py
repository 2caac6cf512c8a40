"""Which commit of a hub's model is meant: a branch may move between two starts, and between two files of one."""

from __future__ import annotations

from pathlib import Path

from ..spec.job import ExportJob


def commit(job: ExportJob) -> str:
    """Return the commit of the base model that this node has; empty for a folder, and where it has none."""
    if Path(job.model).is_dir():
        return ""
    from huggingface_hub import try_to_load_from_cache  # takes a while to import, which a folder need not wait for
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(job.model, "config.json", revision=job.revision or None)
    except HFValidationError:  # a folder that has gone
        return ""
    return Path(found).parent.name if isinstance(found, str) else ""


def pinned(job: ExportJob) -> ExportJob:
    """Return `job` with the commit as its revision, once the config was read: all else is read of that one."""
    return job.model_copy(update={"revision": commit(job) or job.revision})
