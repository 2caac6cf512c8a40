"""The proof of an adapter's run: what was exported against the base with the checkpoint's own adapter, in fp32.

load     merged: as of any model. adapter: PEFT finds every tensor of the file and no other, in the chosen dtype
forward  one forward pass gives finite logits
compare  the same pass of the base with the adapter beside it, whose tensors torch.distributed.checkpoint
         loads out of the checkpoint, gives the same; how far the adapter moves the base is said beside it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from ..adapters.names import WEIGHTS, base_name, saved_name
from ..spec.job import ExportJob
from .adapted import read_config
from .manifest import MODEL_FOLDER
from .sheet import TOKENS, Sheet, load_exported, logits
from .stream import CODES

ROUNDING = 4  # units in the last place of the export's dtype, of the largest logit
ARITHMETIC = 1e-4  # of the largest logit: sums in another order, in fp32


def weights(job: ExportJob, folder: Path, sheet: Sheet) -> float | None:
    """Run load, forward and compare; return the largest difference of a logit, None where it didn't come to that."""
    exported = _merged(job, folder, sheet) if job.adapter == "merged" else _beside(job, folder, sheet)
    if exported is None or not sheet.add("forward", _finite(exported), f"{TOKENS} tokens through the model"):
        return None
    reference, plain = _reference(job)
    return _compare(job, exported, reference, plain, sheet)


def _merged(job: ExportJob, folder: Path, sheet: Sheet) -> torch.Tensor | None:
    model = load_exported(job, folder, sheet)
    return None if model is None else logits(model.float())


def _beside(job: ExportJob, folder: Path, sheet: Sheet) -> torch.Tensor | None:
    """Load the adapter's folder onto the base as anyone would."""
    model = PeftModel.from_pretrained(_base(job), str(folder), local_files_only=True).eval()
    live = {saved_name(name): p for name, p in model.named_parameters() if is_adapters(name)}
    with safe_open(folder / WEIGHTS, "pt") as file:
        stored = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        odd = set(stored) ^ set(live)
        codes = {part.get_dtype() for part in stored.values()}
    detail = f"missing or unexpected: {', '.join(sorted(odd)[:5])}" if odd else f"{len(stored)} tensors, none left over"
    right = not odd and codes == {CODES[getattr(torch, job.dtype)]}
    return logits(model) if sheet.add("load", right, f"{detail}; {', '.join(sorted(codes))}") else None


def _reference(job: ExportJob) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of the base with the checkpoint's own adapter, and without it."""
    checkpoint = Path(job.checkpoint)
    config = LoraConfig.from_peft_type(**read_config(checkpoint))
    model = get_peft_model(_base(job), config).eval()
    state = {saved_name(name): p.data for name, p in model.named_parameters() if is_adapters(name)}
    for tensor in state.values():
        tensor.fill_(torch.nan)  # so that one left out can't go unseen
    dcp.load({"model": state}, checkpoint_id=checkpoint / MODEL_FOLDER, no_dist=True)
    with_adapter = logits(model)
    with model.disable_adapter():
        return with_adapter, logits(model)


def is_adapters(name: str) -> bool:
    """Tell whether a live parameter is the adapter's own."""
    return base_name(name) is None or ".modules_to_save." in name


def _base(job: ExportJob) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        job.model, revision=job.revision or None, dtype=torch.float32, trust_remote_code=job.trust_remote_code
    )


def _finite(found: torch.Tensor) -> bool:
    return bool(torch.isfinite(found).all())


def _compare(
    job: ExportJob, exported: torch.Tensor, reference: torch.Tensor, plain: torch.Tensor, sheet: Sheet
) -> float:
    difference, moved = (float((other - reference).abs().max()) for other in (exported, plain))
    dtype = getattr(torch, job.dtype)
    allowed = max(ROUNDING * torch.finfo(dtype).eps, ARITHMETIC) * float(reference.abs().max())
    detail = (
        f"largest difference of a logit to the base with the checkpoint's adapter: {difference:g} (allowed:"
        f" {allowed:g}); the adapter moves a logit of the base by up to {moved:g}"
    )
    sheet.add("compare", difference <= allowed, detail)  # NaN is not <= anything
    return difference
