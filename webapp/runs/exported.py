"""What an export's lines mean for its row, and where the run's page shows it."""

from __future__ import annotations

import re

from training.spec.events import Kind
from training.spec.job import FORMATS

from . import jobkinds
from .archive import Archive
from .counts import not_counts
from .models import Export
from .readings import Told

SHA256 = re.compile(r"[0-9a-f]{64}")


def bad_exported(event: Told) -> str:
    data = event.data
    if not isinstance(data.get("files"), list) or not isinstance(data.get("proof"), dict):
        return "files or proof is missing"
    if wrong := [file for file in data["files"] if not _is_file(file)]:
        return f"files holds {wrong[0]!r}"[:200]
    try:
        Archive("model", tuple((file["name"], file["size"]) for file in data["files"]))
    except ValueError as error:
        return f"files: {error}"[:200]
    if data.get("dtype") not in FORMATS:
        return f"dtype is {data.get('dtype')!r}"[:200]
    return not_counts(event, "bytes")


def _is_file(file: object) -> bool:
    """Tell whether pages, the API and downloads can show it: a hash goes into a header, a size is counted with."""
    if not isinstance(file, dict) or not isinstance(file.get("name"), str) or type(file.get("size")) is not int:
        return False
    return bool(SHA256.fullmatch(str(file.get("sha256"))))


def _exported(export_id: int, event: Told) -> None:
    data = event.data
    found = {name: data[name] for name in ("bytes", "files", "proof")} | {"made_dtype": data["dtype"]}
    passport = {"passport": data["passport"]} if isinstance(data.get("passport"), dict) else {}
    Export.objects.filter(pk=export_id).update(**found, **passport)


def register() -> None:
    jobkinds.register(
        jobkinds.JobKind(
            Export,
            checks={Kind.EXPORTED: bad_exported},
            handlers={Kind.EXPORTED: _exported},
            parts=("exports", "checkpoints"),
        )
    )
