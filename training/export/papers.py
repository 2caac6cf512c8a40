"""What goes into the folder when the proof has passed: passport.json, README.md, proof.json, SHA256SUMS.

Each lists the ones before it, and the last all others: `sha256sum -c SHA256SUMS` in the folder checks every byte. None
of them holds a time of its own making, so the same export gives the same bytes whenever it is done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..preflight import preflight
from ..saving import progress
from ..spec import passport
from ..spec.deliver.folder import SUMS, sums_of
from ..spec.events import strict
from ..spec.job import ExportJob
from ..spec.passport import ExportFacts, Passport
from . import card, place
from .fromfiles import compose
from .outcome import refuse
from .place import Written

PROOF, CARD = "proof.json", "README.md"


def read(job: ExportJob) -> Passport:
    """Return what is known of the weights before they are exported; raise Refused where it can't be read."""
    if not job.passport:
        return compose(job)
    try:
        return Passport.model_validate_json(Path(job.passport).read_bytes())
    except OSError as error:
        raise refuse("passport", f"{job.passport}: {error.strerror}", "Put it there, or leave it out.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise refuse("passport", f"{job.passport}: {where}: {first['msg']}", "Correct it, or leave it out.") from error


def write(
    job: ExportJob, known: Passport, proof: dict[str, Any], folder: Path, weights: Sequence[Written]
) -> dict[str, Any]:
    """Write them; return the data of the `exported` event."""
    full = _completed(job, known)
    told = full.model_dump(mode="json")
    _json(folder / passport.NAME, told)
    (folder / CARD).write_text(card.text(job, full, proof), "utf-8")
    hashed = {file.name: file for file in weights}
    files = [hashed.get(path.name) or place.facts(path) for path in place.results(folder)]
    listed = [file.as_dict() for file in files]
    head = {"checkpoint": full.checkpoint.name, "step": full.checkpoint.step, "dtype": job.dtype}
    _json(folder / PROOF, {**head, "adapter": job.adapter, "files": listed, **proof})
    files.append(place.facts(folder / PROOF))
    (folder / SUMS).write_text(sums_of(files), "utf-8")
    files.append(place.facts(folder / SUMS))
    return {
        "bytes": sum(file.size for file in files),
        "dtype": job.dtype,
        "files": [file.as_dict() for file in files],
        "proof": proof,
        "passport": told,
    }


def _completed(job: ExportJob, known: Passport) -> Passport:
    """Add what this node knows: the checkpoint's own count and base, this machine, and its versions."""
    here = preflight(Path(job.out).parent)
    export = ExportFacts(
        dtype=job.dtype,
        adapter=job.adapter,
        max_shard_bytes=job.max_shard_bytes,
        asked_by=known.asked_by,
        hardware=passport.hardware(here),
        versions=passport.versions(here),
    )
    changes: dict[str, Any] = {"export": export}
    try:
        found = progress.read(Path(job.checkpoint))
    except (OSError, ValueError):  # a checkpoint of another making
        return known.model_copy(update=changes)
    changes["cost"] = known.cost.model_copy(update={"tokens": found.tokens})
    identity = known.model.identity | ({"training": found.origin.model} if found.origin.model else {})
    changes["model"] = known.model.model_copy(update={"identity": identity})
    return known.model_copy(update=changes)


def _json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(strict(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
