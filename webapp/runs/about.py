"""What people keep of a run, and what was edited when it was made of another."""

from __future__ import annotations

from typing import Any

from .differences import between
from .models import Run


def about(run: Run) -> dict[str, Any]:
    """Return what the part of the run page shows. `text` and `typed` are what its fields hold."""
    tags, source = [tag.name for tag in run.tags.all()], run.cloned_from
    return {
        "tags": tags,
        "typed": ", ".join(tags),
        "text": run.notes,
        "source": source,
        "edits": between(source, run, run.recipe) if source else [],
    }
