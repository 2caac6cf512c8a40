"""The proof of a model that is larger than memory: it runs all the same, its weights read while it does.

forward   one forward pass with the exported weights gives finite logits
finite    every value in the files is finite
contents  every value in the files is the checkpoint's, converted
compare   the same pass with the checkpoint's own weights, converted, gives the same logits: no difference at all
Where a model's forward pass can't be run so, contents and finite stand alone, and the proof says so.
"""

from __future__ import annotations

from pathlib import Path

import torch

from ..spec.job import ExportJob
from . import flat, streamed
from .blueprint import blueprint, load_config
from .sheet import TOKENS, Sheet
from .source import open_source
from .vocabulary import plan_for
from .weights import Weights, of_files, of_source
from .written import WrittenTensors

WHOLE = 1 << 28  # bytes that a tensor which is needed whole may take where nothing else is known


def weights(job: ExportJob, folder: Path, memory: int, sheet: Sheet) -> tuple[float | None, str]:
    """Run the checks; return the largest difference of a logit, or None and why the passes were not compared."""
    ours = of_files(WrittenTensors(folder), max(memory // 3, WHOLE))
    theirs = of_source(open_source(job, plan_for(job)), ours, getattr(torch, job.dtype), ours.most)
    why = "an adapter alone is no model that could be run" if job.adapter == "adapter" else ""
    passes: list[torch.Tensor] = []
    try:
        passes += [] if why else [logits(job, folder, which) for which in (ours, theirs)]
    except Exception as error:  # noqa: BLE001  whatever a model's own code raises where its weights aren't there
        why = f"its forward pass can't be run while its weights are read: {type(error).__name__}: {error}"[:500]
    if passes:
        found = bool(torch.isfinite(passes[0]).all())
        text = f"{TOKENS} tokens, weights read while they are used; logits {'finite' if found else 'not finite'}"
        sheet.add("forward", found, text)
    values(ours, theirs, sheet)
    return (_compare(passes[0], passes[1], sheet), "") if passes else (None, why)


def values(ours: Weights, theirs: Weights, sheet: Sheet) -> None:
    """Add what reading every value finds."""
    ours.finish()
    theirs.finish()
    count = f"every value of {len(ours.shapes)} tensors"
    bad = ours.not_finite
    sheet.add("finite", not bad, f"not finite: {flat.listed(bad)}" if bad else f"{count} is finite")
    differ = flat.differ(ours, theirs)
    sheet.add("contents", not differ, f"differ: {flat.listed(differ)}" if differ else f"{count} is the checkpoint's")


def logits(job: ExportJob, folder: Path, found: Weights) -> torch.Tensor:
    own = job.model_copy(update={"model": str(folder), "revision": ""})
    config = load_config(own)
    plan = blueprint(config, trust_remote_code=job.trust_remote_code)
    dtype = getattr(torch, job.dtype)
    return streamed.logits(config, plan, found, dtype, trust_remote_code=job.trust_remote_code)


def _compare(exported: torch.Tensor, reference: torch.Tensor, sheet: Sheet) -> float:
    difference = float((exported - reference).abs().max())
    text = f"largest difference of a logit to the checkpoint's own weights, converted: {difference:g} (allowed: 0)"
    sheet.add("compare", difference == 0, text)  # NaN is not 0
    return difference
