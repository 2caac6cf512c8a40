"""The job that brings an export to a destination: recipe.json of `python -m training deliver`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from ..job import Part
from ..lint import Problem, Refused
from .targets import HubTarget, PathTarget, S3Target, Target
from .words import refused, wrong


class DeliverJob(Part):
    """recipe.json of a delivery."""

    source: str = Field(description="Folder of an export that is proven: proof.json in it names its files.")
    target: Target
    replace: bool = Field(
        False, description="Let other content under the same name go; a folder stays until the new one is in its place."
    )
    events: str = Field(description="File that the events are appended to.")

    @model_validator(mode="after")
    def _apart(self) -> DeliverJob:
        if isinstance(self.target, PathTarget):
            source, folder = PurePosixPath(self.source), PurePosixPath(self.target.folder)
            if source == folder or source in folder.parents or folder in source.parents:
                raise wrong("target.folder: it is the export's own folder, in it, or around it", "Choose another.")
        return self


_TARGET: TypeAdapter[PathTarget | S3Target | HubTarget] = TypeAdapter(Target)


def parse_target(data: Mapping[str, Any]) -> PathTarget | S3Target | HubTarget:
    """Return the destination that `data` describes; raise Refused with every problem at once."""
    try:
        return _TARGET.validate_python(dict(data))
    except ValidationError as error:
        raise refused(error, "target") from None


def parse_job(text: str | bytes) -> DeliverJob:
    """Return the job that the JSON `text` describes; raise Refused with every problem at once."""
    try:
        return DeliverJob.model_validate(json.loads(text))
    except ValidationError as error:
        raise refused(error, "job") from None
    except (ValueError, RecursionError):
        raise Refused([Problem("job", "it is no JSON", 'Write {"source": ..., "target": ...}.')]) from None
